"""The scripts of the page about fleets, run on HDFS and on a mount of CephFS."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.components.cephfs import CephFS
from tests.components.hdfs import Hdfs
from tests.examples.test_fleet import deploy_and_serve, model  # noqa: F401 - the latter is a fixture


def test_a_fleet_on_hdfs(
    model: Path,  # noqa: F811
    hdfs_server: Hdfs,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in hdfs_server.environment().items():
        monkeypatch.setenv(name, value)
    deploy_and_serve(model, hdfs_server.url("fleet/half"), tmp_path)


def test_a_fleet_on_cephfs(model: Path, cephfs_server: CephFS, tmp_path: Path) -> None:  # noqa: F811
    deploy_and_serve(model, (cephfs_server.mount / "fleet" / "half").as_uri(), tmp_path)
