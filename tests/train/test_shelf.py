"""Shelves: a directory of one's own, and memory. Both keep the same promises."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from glowplug.core.errors import StorageError
from glowplug.train.trace.shelf import DirectoryShelf, MemoryShelf, default_directory, prune


@pytest.fixture(params=["directory", "memory"])
def shelf(request, tmp_path):
    return DirectoryShelf(tmp_path / "shelf") if request.param == "directory" else MemoryShelf()


def test_what_was_written_is_read(shelf):
    assert shelf.read("a1") is None
    shelf.write("a1", b"some bytes")
    shelf.write("a1", b"other bytes")
    assert shelf.read("a1") == b"other bytes"
    assert shelf.read("a1", 5) == b"other"
    assert [(item.name, item.size) for item in shelf.items()] == [("a1", 11)]
    shelf.remove("a1")
    shelf.remove("a1")
    assert shelf.read("a1") is None
    assert shelf.items() == []


def test_pruning_removes_what_was_not_used_for_longest(shelf, monkeypatch):
    from glowplug.train.trace import shelf as module

    for moment, name in enumerate(["a", "b", "c", "d"], start=1_000):
        monkeypatch.setattr(module.time, "time", lambda moment=moment: float(moment))
        shelf.write(name, b"x" * 10)
        shelf.touch(name)
    monkeypatch.setattr(module.time, "time", lambda: 2_000.0)
    shelf.touch("a")
    assert [item.name for item in shelf.items()] == ["a", "d", "c", "b"]
    assert {item.name for item in prune(shelf, max_bytes=25)} == {"c", "b"}
    assert {item.name for item in prune(shelf, older_than_s=500)} == {"d"}
    assert [item.name for item in shelf.items()] == ["a"]
    assert prune(shelf, max_bytes=10) == []


@pytest.mark.parametrize("name", ["../escape", "a/b", "", ".hidden", "a.b"])
def test_names_that_could_leave_the_directory(name, tmp_path):
    with pytest.raises(StorageError):
        DirectoryShelf(tmp_path / "shelf").write(name, b"")


def test_a_link_to_a_directory_is_not_a_directory_of_ones_own(tmp_path):
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(StorageError):
        DirectoryShelf(tmp_path / "link")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_directory_of_someone_else(tmp_path):
    (tmp_path / "shelf").mkdir(mode=0o700)
    os.chown(tmp_path / "shelf", 12345, 12345)
    with pytest.raises(StorageError, match="owner 12345"):
        DirectoryShelf(tmp_path / "shelf")


def test_where_traces_are_kept(monkeypatch):
    monkeypatch.delenv("GLOWPLUG_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert default_directory() == Path("/xdg/glowplug/traces")
    monkeypatch.setenv("GLOWPLUG_CACHE_DIR", "/mine")
    assert default_directory() == Path("/mine/traces")
