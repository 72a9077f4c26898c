"""Shelves: a directory of one's own, and memory. Both keep the same promises."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from glowplug.core.disk import unfinished
from glowplug.core.errors import StorageError
from glowplug.train.trace.entry_store import DirectoryStore, MemoryStore, default_directory, prune


@pytest.fixture(params=["directory", "memory"])
def store(request, tmp_path):
    return DirectoryStore(tmp_path / "store") if request.param == "directory" else MemoryStore()


def test_what_was_written_is_read(store):
    assert store.read("a1") is None
    store.write("a1", b"some bytes")
    store.write("a1", b"other bytes")
    assert store.read("a1") == b"other bytes"
    assert store.read("a1", 5) == b"other"
    assert [(item.name, item.size) for item in store.items()] == [("a1", 11)]
    store.remove("a1")
    store.remove("a1")
    assert store.read("a1") is None
    assert store.items() == []


def test_pruning_removes_what_was_not_used_for_longest(store, monkeypatch):
    from glowplug.train.trace import entry_store as module

    for moment, name in enumerate(["a", "b", "c", "d"], start=1_000):
        monkeypatch.setattr(module.time, "time", lambda moment=moment: float(moment))
        store.write(name, b"x" * 10)
        store.touch(name)
    monkeypatch.setattr(module.time, "time", lambda: 2_000.0)
    store.touch("a")
    assert [item.name for item in store.items()] == ["a", "d", "c", "b"]
    assert {item.name for item in prune(store, max_bytes=25)} == {"c", "b"}
    assert {item.name for item in prune(store, older_than_s=500)} == {"d"}
    assert [item.name for item in store.items()] == ["a"]
    assert prune(store, max_bytes=10) == []


def test_counts_of_restores_go_with_their_entry(tmp_path):
    store = DirectoryStore(tmp_path / "store")
    for name in ("a", "b"):
        store.write(name, b"x" * 10)
        (store.path / f"{name}.restores").write_text("{}")
    assert [item.name for item in prune(store, older_than_s=-1000)] != []
    assert list(store.path.iterdir()) == []
    (store.path / "lost.restores").write_text("{}")
    store.write("c", b"")
    assert [place.name for place in store.path.iterdir()] == ["c.trace"]


@pytest.mark.parametrize("name", ["../escape", "a/b", "", ".hidden", "a.b"])
def test_names_that_could_leave_the_directory(name, tmp_path):
    with pytest.raises(StorageError):
        DirectoryStore(tmp_path / "store").write(name, b"")


def test_a_link_to_a_directory_is_not_a_directory_of_ones_own(tmp_path):
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(StorageError):
        DirectoryStore(tmp_path / "link")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_directory_of_someone_else(tmp_path):
    (tmp_path / "store").mkdir(mode=0o700)
    os.chown(tmp_path / "store", 12345, 12345)
    with pytest.raises(StorageError, match="owner 12345"):
        DirectoryStore(tmp_path / "store")


def test_where_traces_are_kept(monkeypatch):
    monkeypatch.delenv("GLOWPLUG_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert default_directory() == Path("/xdg/glowplug/traces")
    monkeypatch.setenv("GLOWPLUG_CACHE_DIR", "/mine")
    assert default_directory() == Path("/mine/traces")


WRITER = """
import os, signal, sys
from pathlib import Path
from glowplug.train.trace.entry_store import DirectoryStore
store = DirectoryStore(Path(sys.argv[1]))
"""


def start(source, *arguments, **options):
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    return subprocess.Popen([sys.executable, "-c", WRITER + source, *map(str, arguments)], env=environment, **options)


def test_a_writer_that_is_killed_leaves_the_old_entry_and_nothing_else(tmp_path):
    store = DirectoryStore(tmp_path / "store")
    store.write("a1", b"old")
    killed = """
os.fsync = lambda descriptor: os.kill(os.getpid(), signal.SIGKILL)
for name in ("a1", "b2"):
    if os.fork() == 0:
        store.write(name, b"new" * 1000)
    os.wait()
"""
    assert start(killed, store.path).wait(60) == 0
    assert store.read("a1") == b"old"
    assert store.read("b2") is None
    assert [item.name for item in store.items()] == ["a1"]
    assert len(list(store.path.iterdir())) == 3
    with unfinished.new_file(str(store.path / "c3.trace")) as at_work:
        store.write("b2", b"new")
        assert len(list(store.path.iterdir())) == 3, "another writer is still at work"
        at_work.write(b"whole")
    assert sorted(place.name for place in store.path.iterdir()) == ["a1.trace", "b2.trace", "c3.trace"]


def test_two_writers_of_one_entry_never_mix(tmp_path):
    store = DirectoryStore(tmp_path / "store")
    sizes = {b"a": 300_000, b"b": 200_000}
    writing = """
sys.stdin.readline()
for _ in range(60):
    store.write("a1", sys.argv[2].encode() * int(sys.argv[3]))
"""
    writers = [start(writing, store.path, one.decode(), size, stdin=subprocess.PIPE) for one, size in sizes.items()]
    for writer in writers:
        writer.stdin.write(b"go\n")
        writer.stdin.flush()
    while any(writer.poll() is None for writer in writers):
        data = store.read("a1")
        assert data is None or data == data[:1] * sizes[data[:1]]
    assert [writer.wait() for writer in writers] == [0, 0]
    assert [item.name for item in store.items()] == ["a1"]
    assert not list(store.path.glob(".*"))
