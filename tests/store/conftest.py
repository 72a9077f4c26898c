"""A node cache of its own for each test, and directories to push."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

MB = 1 << 20


@pytest.fixture(autouse=True)
def node_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "node-cache"
    monkeypatch.setenv("GLOWPLUG_NODE_CACHE_DIR", str(place))
    for name in ("GLOWPLUG_NODE_CACHE_BYTES", "GLOWPLUG_TRUSTED_KEYS", "GLOWPLUG_REQUIRE_SIGNATURE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GLOWPLUG_RETRIES", "3")
    return place


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A directory like a bundle's: 40 MB of weights, small files, an empty one and a folder."""
    directory = tmp_path / "model"
    (directory / "assets").mkdir(parents=True)
    (directory / "weights.bin").write_bytes(random.Random(1).randbytes(40 * MB))
    (directory / "bundle.json").write_text('{"some": "manifest"}')
    (directory / "assets" / "vocabulary.txt").write_text("a\nb\n")
    (directory / "assets" / "empty").touch()
    return directory


def contents(directory: Path) -> dict[str, bytes]:
    """Return the files of a directory."""
    return {
        path.relative_to(directory).as_posix(): path.read_bytes() for path in directory.rglob("*") if path.is_file()
    }
