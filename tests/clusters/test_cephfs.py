"""A mount of CephFS: a storage like any path, and a place for a node cache that several processes share."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from glowplug.store.pull import pull
from glowplug.store.push import push
from tests.clusters.conftest import contents
from tests.components.cephfs import CephFS


def test_there_and_back(cephfs_server: CephFS, directory: Path) -> None:
    url = (cephfs_server.mount / "models" / "a").as_uri()
    pushed = push(directory, url)
    assert contents(pull(url)) == contents(directory)
    assert push(directory, url).sent_bytes == 0
    assert contents(pull(f"{url}@{pushed.digest}")) == contents(directory)


def test_a_node_cache_on_the_mount(
    cephfs_server: CephFS, directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several processes ask at once; one of them fetches, which shows in that all have the same directory."""
    url = (tmp_path / "storage" / "a").as_uri()
    push(directory, url)
    monkeypatch.setenv("GLOWPLUG_NODE_CACHE_DIR", str(cephfs_server.mount / "node-cache"))
    command = [sys.executable, "-m", "glowplug", "pull", url, "--json"]
    asking = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    told = [json.loads(process.communicate(timeout=120)[0]) for process in asking]
    (path,) = {one["path"] for one in told}
    assert contents(Path(path)) == contents(directory)
    assert list((cephfs_server.mount / "node-cache" / "partial").iterdir()) == []
