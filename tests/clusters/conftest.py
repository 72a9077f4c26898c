"""Tests that need HDFS or CephFS: `make test-storage` installs them. Each has a node cache of its own."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

MB = 1 << 20


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.storage)


@pytest.fixture(autouse=True)
def node_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GLOWPLUG_NODE_CACHE_DIR", str(tmp_path / "node-cache"))
    return tmp_path / "node-cache"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Something to push: large enough to be under way for a while."""
    place = tmp_path / "model"
    (place / "assets").mkdir(parents=True)
    (place / "weights.bin").write_bytes(random.Random(5).randbytes(160 * MB))
    (place / "assets" / "words.txt").write_text("one\ntwo\n")
    (place / "empty").touch()
    return place


def contents(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}
