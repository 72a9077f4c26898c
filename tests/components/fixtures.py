"""Servers as fixtures, one of each for a test run. What cannot be started here skips the tests that need it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.components import cephfs, hdfs, relay, seaweedfs


@pytest.fixture(scope="session")
def seaweedfs_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[seaweedfs.SeaweedFS]:
    reason = seaweedfs.why_not()
    if reason:
        pytest.skip(reason)
    with seaweedfs.running(tmp_path_factory.mktemp("seaweedfs")) as server:
        yield server


@pytest.fixture
def s3(seaweedfs_server: seaweedfs.SeaweedFS, monkeypatch: pytest.MonkeyPatch) -> seaweedfs.SeaweedFS:
    """S3, with the variables set by which this process and those that it starts find it."""
    for name, value in seaweedfs_server.environment().items():
        monkeypatch.setenv(name, value)
    return seaweedfs_server


@pytest.fixture
def s3_relay(s3: seaweedfs.SeaweedFS, monkeypatch: pytest.MonkeyPatch) -> Iterator[relay.Relay]:
    """The way to S3 leads through a relay, which counts and can fail."""
    with relay.relaying(s3.s3_port) as found:
        monkeypatch.setenv("AWS_ENDPOINT_URL", s3.environment(found.port)["AWS_ENDPOINT_URL"])
        yield found


@pytest.fixture(scope="session")
def hdfs_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[hdfs.Hdfs]:
    reason = hdfs.why_not()
    if reason:
        pytest.skip(reason)
    with hdfs.running(tmp_path_factory.mktemp("hdfs")) as server:
        yield server


@pytest.fixture(scope="session")
def cephfs_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[cephfs.CephFS]:
    reason = cephfs.why_not()
    if reason:
        pytest.skip(reason)
    with cephfs.running(tmp_path_factory.mktemp("cephfs")) as server:
        yield server
