"""A NameNode and two DataNodes: what is pushed comes back, also when a DataNode dies in the middle."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from glowplug.core.errors import ObjectNotFoundError
from glowplug.store.backend import open_backend
from glowplug.store.location import parse
from glowplug.store.progress import Transfer
from glowplug.store.pull import pull
from glowplug.store.push import push
from tests.clusters.conftest import contents
from tests.components import hdfs
from tests.components.hdfs import Hdfs
from tests.serve.conftest import half_plus_two, packed, shared_models  # noqa: F401 - fixtures: a model to serve
from tests.serve.server import Server


@pytest.fixture
def found(hdfs_server: Hdfs, monkeypatch: pytest.MonkeyPatch) -> Hdfs:
    _set(hdfs_server, monkeypatch)
    return hdfs_server


def _set(server: Hdfs, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in server.environment().items():
        monkeypatch.setenv(name, value)


def test_the_four_operations(found: Hdfs) -> None:
    place = open_backend(parse(found.url("operations")))
    data = bytes(range(256)) * 10_000  # more than two blocks
    place.backend.write(place.child("deep/er/one"), data)
    place.backend.write(place.child("deep/er/one"), data)
    assert place.backend.size(place.child("deep/er/one")) == len(data)
    middle = hdfs.BLOCK_BYTES
    assert (
        bytes(place.backend.read(place.child("deep/er/one"), middle - 5, middle + 5)) == data[middle - 5 : middle + 5]
    )
    assert bytes(place.backend.read(place.child("deep/er/one"), len(data) - 3, len(data) + 9)) == data[-3:]
    assert [(one.path, one.size) for one in place.backend.list(place.path)] == [("operations/deep/er/one", len(data))]
    assert list(place.backend.list("nowhere")) == []
    for operation in (lambda: place.backend.size("nowhere"), lambda: place.backend.read("nowhere", 0, 1)):
        with pytest.raises(ObjectNotFoundError):
            operation()


def test_there_and_back(found: Hdfs, directory: Path) -> None:
    pushed = push(directory, found.url("models/a"))
    assert contents(pull(found.url("models/a"))) == contents(directory)
    assert push(directory, found.url("models/b")).sent_bytes == 0
    assert pull(f"{found.url('models/b')}@{pushed.digest}") == pull(found.url("models/a"))


def test_a_datanode_that_is_killed_in_the_middle_of_a_pull(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reason = hdfs.why_not()
    if reason:
        pytest.skip(reason)
    killed_at: list[Transfer] = []
    with hdfs.running(tmp_path / "hdfs") as server:  # of its own, since it is not what it was afterwards
        _set(server, monkeypatch)
        monkeypatch.setenv("GLOWPLUG_CONNECTIONS", "2")
        push(directory, server.url("model"))

        def kill(transfer: Transfer) -> None:
            if transfer.done_bytes and not killed_at:
                server.datanodes[0].kill()
                server.datanodes[0].wait()
                killed_at.append(transfer)

        fetched = pull(server.url("model"), progress=kill)
        assert contents(fetched) == contents(directory)
    (transfer,) = killed_at
    assert 0 < transfer.done_bytes < transfer.total_bytes


def test_a_base_path_with_versions(found: Hdfs, half_plus_two: Path) -> None:  # noqa: F811
    def deploy(version: int) -> None:
        command = [sys.executable, "-m", "glowplug", "push", half_plus_two, f"{found.url('serve/half')}/{version}"]
        subprocess.run(command, check=True, capture_output=True)

    deploy(1)
    with Server("--model_name=half", f"--model_base_path={found.url('serve/half')}", "--poll-seconds", 0.5) as server:
        asked = {"instances": [1.0, 2.0]}
        assert server.post("/v1/models/half:predict", asked) == (200, {"predictions": [2.5, 3.0]})
        deploy(2)
        server.wait_event("available", version=2)
