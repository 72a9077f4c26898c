"""The node cache: one fetch for many, nothing removed that is used, and what is damaged is found."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from glowplug.core.errors import AccessError, DiskFullError, StorageError
from glowplug.store import tree as trees
from glowplug.store.node_cache import entries, room, waiting
from glowplug.store.node_cache.folder import open_folder
from glowplug.store.node_cache.locks import try_exclusive, try_shared
from glowplug.store.pull import obtain, pull
from glowplug.store.push import push
from tests.fakes.web_server import WebServer, serving
from tests.store.conftest import MB, contents

SOURCE = Path(__file__).parents[2] / "src"
PULL = "import sys; from glowplug.store.pull import pull; print(pull(sys.argv[1]))"


def start(code: str, *arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    command = [sys.executable, "-c", code, *arguments]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, env=environment, text=True, **pipes)


def fetched_bytes(web: WebServer) -> int:
    return sum(size for path, size in web.sent if trees.POOL in path)


def chunk_bytes(web: WebServer) -> int:
    return sum(len(data) for name, data in web.objects.items() if trees.POOL in name and not name.endswith(".json"))


def make_tree(folder: Path, size: int, seed: int) -> Path:
    import random

    folder.mkdir(parents=True)
    (folder / "data").write_bytes(random.Random(seed).randbytes(size))
    return folder


def test_many_processes_fetch_once(model):
    with serving() as web:
        push(model, f"{web.url}/m")
        web.sent.clear()
        children = [start(PULL, f"{web.url}/m") for _ in range(5)]
        outputs = [child.communicate(timeout=120) for child in children]
        assert {child.returncode for child in children} == {0}, outputs
        assert len({out for out, _ in outputs}) == 1
        assert fetched_bytes(web) == chunk_bytes(web)
    assert contents(Path(outputs[0][0].strip())) == contents(model)


def test_threads_of_one_process_fetch_once(model):
    with serving() as web:
        push(model, f"{web.url}/m")
        web.sent.clear()
        held, threads = [], []
        for _ in range(4):
            threads.append(threading.Thread(target=lambda: held.append(obtain(f"{web.url}/m"))))
            threads[-1].start()
        for thread in threads:
            thread.join()
        assert len(held) == 4
        assert fetched_bytes(web) == chunk_bytes(web)


def test_those_who_wait_are_told_why_it_failed(model, node_cache):
    with serving() as web:
        digest = push(model, f"{web.url}/m").digest
        folder = open_folder(node_cache)
        failures: list[AccessError] = []

        def ask() -> None:
            with pytest.raises(AccessError, match="no such luck") as caught:
                pull(f"{web.url}/m")
            failures.append(caught.value)

        with try_exclusive(folder.part("locks") / digest):  # as the process that fetches
            thread = threading.Thread(target=ask)
            thread.start()
            while thread.is_alive():
                waiting.leave_failure(folder, digest, AccessError("no such luck", seen="there", remedy="ask again"))
                thread.join(0.02)
        assert [str(one) for one in failures] == ["no such luck: there; ask again"]
        assert not any(trees.POOL in path for method, path in web.requests if method == "GET")
        assert contents(pull(f"{web.url}/m")) == contents(model)


def test_a_process_that_is_killed_hands_over(model, node_cache):
    """The waiter goes on with what the dead one had; the kernel gave up its lock."""
    with serving() as web:
        digest = push(model, f"{web.url}/m", boundaries={"weights.bin": [MB * n for n in range(40)]}).digest
        web.sent.clear()
        reached, go_on = threading.Event(), threading.Event()

        class Stopping(list):
            seen = 0

            def __bool__(self) -> bool:
                if trees.POOL in web.requests[-1][1]:
                    Stopping.seen += 1
                    if Stopping.seen == 4:
                        reached.set()
                        go_on.wait(60)
                return False

        web.faults = Stopping()
        os.environ["GLOWPLUG_CONNECTIONS"] = "1"
        try:
            first = start(PULL, f"{web.url}/m")
            assert reached.wait(60)
            second = start(PULL, f"{web.url}/m@{digest}")
            deadline = time.monotonic() + 60
            while len([path for method, path in web.requests if method == "GET" and path.endswith(".json")]) < 2:
                assert time.monotonic() < deadline
                time.sleep(0.01)
            first.kill()
            first.wait()
            before = fetched_bytes(web)
            web.sent.clear()
            go_on.set()
            out, err = second.communicate(timeout=60)
        finally:
            del os.environ["GLOWPLUG_CONNECTIONS"]
        assert second.returncode == 0, err
        assert contents(Path(out.strip())) == contents(model)
        assert before > 0
        assert fetched_bytes(web) + before <= chunk_bytes(web) + 4 * MB  # what was on its way when it was killed


def test_what_is_used_is_not_removed(tmp_path, node_cache):
    urls = [make_tree(tmp_path / name, MB, seed).as_uri() for seed, name in enumerate("abc")]
    held = [obtain(url) for url in urls]
    folder = open_folder(node_cache)
    assert room.prune(folder, max_bytes=0) == []
    held[1].release()
    assert [one.digest for one in room.prune(folder, max_bytes=0)] == [held[1].digest]
    assert room.used_digests(folder) == {held[0].digest, held[2].digest}
    for one in held:
        one.release()
    assert len(room.prune(folder, max_bytes=0)) == 2
    assert entries.entries(folder) == []


def test_an_entry_that_another_process_uses_is_not_removed(tmp_path, node_cache):
    url = make_tree(tmp_path / "a", MB, 1).as_uri()
    child = start(f"{PULL}; sys.stdout.flush(); sys.stdin.read()", url)
    try:
        assert child.stdout is not None
        child.stdout.readline()
        assert room.prune(open_folder(node_cache), max_bytes=0) == []
    finally:
        child.kill()
        child.communicate()
    assert len(room.prune(open_folder(node_cache), max_bytes=0)) == 1


def test_what_was_not_used_for_longest_goes_first(tmp_path, node_cache, monkeypatch):
    monkeypatch.setenv("GLOWPLUG_NODE_CACHE_BYTES", str(5 * MB // 2))
    digests = []
    for number, name in enumerate("abc"):
        with obtain(make_tree(tmp_path / name, MB, number).as_uri()) as held:
            digests.append(held.digest)
        os.utime(node_cache / "entries" / held.digest / "lease", (number, number))
        if number == 1:
            with obtain((tmp_path / "a").as_uri()):  # used again
                pass
    assert {one.digest for one in entries.entries(open_folder(node_cache))} == {digests[0], digests[2]}


def test_more_than_the_bound_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("GLOWPLUG_NODE_CACHE_BYTES", str(MB))
    with pytest.raises(DiskFullError, match="larger than the node cache may be"):
        pull(make_tree(tmp_path / "a", 2 * MB, 1).as_uri())


def test_a_shortened_file_is_found_fetched_again_and_reported(model, tmp_path, node_cache):
    url = (tmp_path / "storage" / "m").as_uri()
    digest = push(model, url).digest
    with obtain(url) as held:
        weights = held.path / "weights.bin"
        with weights.open("rb") as mapped:
            weights.chmod(0o600)
            with weights.open("r+b") as stream:
                stream.truncate(5)
            with obtain(f"{url}@{digest}") as again:
                assert contents(again.path) == contents(model)
                assert any("damaged" in note for note in again.notes)
            assert mapped.seek(0, os.SEEK_END) == 5  # whoever has the old one keeps it


def test_altered_bytes_are_found_by_verify_and_after_a_boot(model, tmp_path, node_cache):
    url = (tmp_path / "storage" / "m").as_uri()
    push(model, url)
    folder = open_folder(node_cache)
    for after in ("verify", "boot"):
        with obtain(url) as held:
            assert held.notes == () or after == "boot"
            assert entries.verify(folder, held.digest) == []
        weights = held.path / "weights.bin"
        weights.chmod(0o600)
        with weights.open("r+b") as stream:
            stream.seek(20 * MB)
            stream.write(b"xxxx")
        with obtain(url) as held:
            assert held.notes == ()  # a map is not read
        assert len(entries.verify(folder, held.digest)) == 1
        if after == "verify":
            entries.doubt(folder, held.digest)
        else:
            (folder.entry(held.digest) / "boot").write_bytes(b"another boot")
        with obtain(url) as held:
            assert contents(held.path) == contents(model)
            assert len(held.notes) == 1


def test_an_entry_whose_bytes_are_on_the_disk_counts_after_a_boot(model, tmp_path, node_cache):
    url = (tmp_path / "storage" / "m").as_uri()
    digest = push(model, url).digest
    pull(url)
    folder = open_folder(node_cache)
    entries.mark_synced(folder, digest)
    (folder.entry(digest) / "boot").write_bytes(b"another boot")
    with obtain(f"{url}@{digest}") as held:
        assert held.notes == ()


def test_a_cache_that_others_can_write_to_is_refused(model, node_cache):
    node_cache.mkdir(mode=0o777)
    node_cache.chmod(0o777)
    with pytest.raises(StorageError, match="other users can write") as caught:
        pull(model.as_uri())
    assert caught.value.exit_code == 4
    assert caught.value.remedy == f"chmod go-w {node_cache}"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_whoever_does_not_own_a_cache_is_not_told_to_change_it(tmp_path):
    """Root's, as another user sees it."""
    tmp_path.chmod(0o777)
    code = f"""
import os
from pathlib import Path
from glowplug.store.node_cache.folder import open_folder
os.geteuid = lambda: 65534
open_folder(Path({str(tmp_path)!r}))
"""
    child = start(code)
    _, err = child.communicate(timeout=60)
    assert "other users can write to the node cache" in err
    assert "set GLOWPLUG_NODE_CACHE_DIR to a directory of your own" in err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_cache_of_another_user_is_refused_and_one_of_root_is_read(model, monkeypatch):
    with tempfile.TemporaryDirectory() as folder:  # pytest's own are closed to others
        cache = Path(folder, "cache")
        monkeypatch.setenv("GLOWPLUG_NODE_CACHE_DIR", str(cache))
        with obtain(model.as_uri()) as held:
            digest = held.digest
        for path in [Path(folder), cache, *cache.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
        code = f"""
import os
from glowplug.store.pull import pull
import glowplug.store.backends.local, glowplug.store.transfer.fetching, urllib.parse
os.setgid(65534)
os.setuid(65534)
print(pull("file:///nowhere@{digest}"))
try:
    pull("file:///etc/hostname")
except Exception as error:
    print(error)
"""
        child = start(code)
        out, err = child.communicate(timeout=60)
        assert child.returncode == 0, err
        assert out.splitlines()[0].endswith("content")
        assert "does not have this, and cannot be written" in out
        os.chown(cache, 65533, 65533)
        child = start(code)
        _, err = child.communicate(timeout=60)
        assert "belongs to another user" in err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_disk_that_fills_up_leaves_the_cache_as_it_was(tmp_path, monkeypatch):
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", small], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"cannot mount: {mounted.stderr.decode()}")
    try:
        monkeypatch.setenv("GLOWPLUG_NODE_CACHE_DIR", str(small / "cache"))
        with obtain(make_tree(tmp_path / "a", MB, 1).as_uri()) as kept:
            with pytest.raises(DiskFullError, match="room") as caught:
                pull(make_tree(tmp_path / "b", 8 * MB, 2).as_uri())
            assert caught.value.exit_code == 4
            monkeypatch.setattr(room, "free_bytes", lambda folder: 1 << 40)  # as if somebody else fills it meanwhile
            with pytest.raises(DiskFullError):
                pull((tmp_path / "b").as_uri())
            assert contents(kept.path) == contents(tmp_path / "a")
        folder = open_folder()
        assert [one.digest for one in entries.entries(folder)] == [kept.digest]
        assert list((folder.root / "partial").iterdir()) == []
    finally:
        subprocess.run(["umount", "-l", small], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a disk")
def test_a_cache_on_a_disk_that_is_read_only_is_used(tmp_path, monkeypatch):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "none", disk], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"cannot mount: {mounted.stderr.decode()}")
    try:
        monkeypatch.setenv("GLOWPLUG_NODE_CACHE_DIR", str(disk / "cache"))
        with obtain(make_tree(tmp_path / "a", MB, 1).as_uri()) as held:
            expected = contents(held.path)
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        with obtain((tmp_path / "a").as_uri()) as held:
            assert contents(held.path) == expected
        with pytest.raises(StorageError, match="cannot be written"):
            pull(make_tree(tmp_path / "b", MB, 2).as_uri())
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def test_without_locks_everybody_fetches_for_himself(model, monkeypatch, node_cache):
    def no_locks(descriptor: int, kind: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with serving() as web:
        push(model, f"{web.url}/m")
        assert contents(pull(f"{web.url}/m")) == contents(model)
    assert list((node_cache / "partial").iterdir()) == []


def test_a_file_that_may_not_grow_is_said(tmp_path):
    import resource

    url = make_tree(tmp_path / "a", 4 * MB, 1).as_uri()
    code = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({MB}, {MB})); {PULL}"
    child = start(code, url)
    _, err = child.communicate(timeout=60)
    assert "StorageError: the node cache cannot be written" in err
    assert resource.RLIMIT_FSIZE is not None
    assert contents(pull(url)) == contents(tmp_path / "a")


def test_a_place_that_cannot_be_written_is_said(model, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("GLOWPLUG_NODE_CACHE_DIR", str(tmp_path / "file" / "cache"))
    with pytest.raises(StorageError, match="GLOWPLUG_NODE_CACHE_DIR"):
        pull(model.as_uri())


def test_what_killed_fetches_left_is_removed_after_a_day(tmp_path, node_cache):
    folder = open_folder(node_cache)
    old, new = folder.part("partial") / ("1" * 64), folder.part("partial") / ("2" * 64)
    for path in (old, new):
        path.mkdir()
    os.utime(old, (1, 1))
    folder.trash().mkdir()
    pull(make_tree(tmp_path / "a", 10, 1).as_uri())
    assert not old.exists()
    assert new.exists()
    assert list((node_cache / "trash").iterdir()) == []


def test_an_attempt_that_was_killed_at_its_very_end_is_gone_on_with(model, node_cache, monkeypatch):
    with serving() as web:
        digest = push(model, f"{web.url}/m").digest

        def killed(*_: object) -> str:
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(entries, "publish", killed)
            with pytest.raises(KeyboardInterrupt):
                pull(f"{web.url}/m")
        partial = node_cache / "partial" / digest / "content" / "weights.bin"
        assert not partial.stat().st_mode & 0o222
        web.sent.clear()
        assert contents(pull(f"{web.url}/m")) == contents(model)
        assert fetched_bytes(web) == 0
        assert not list(node_cache.glob("entries/*/journal"))


def test_locks_of_nothing_are_removed_after_a_day(tmp_path, node_cache):
    folder = open_folder(node_cache)
    held, old, new = (folder.part("locks") / (name * 64) for name in "123")
    for path in (held, old, new):
        path.touch()
    os.utime(old, (1, 1))
    os.utime(held, (1, 1))
    with try_exclusive(held):
        room.sweep(folder)
    assert sorted((node_cache / "locks").iterdir()) == [held, new]


def test_locks_are_for_one_or_for_many(tmp_path):
    path = tmp_path / "lock"
    with try_exclusive(path) as alone:
        assert alone.real
        assert try_exclusive(path) is None
        assert try_shared(path) is None
    with try_shared(path), try_shared(path):
        assert try_exclusive(path) is None
    assert try_shared(tmp_path / "nothing") is None


def test_a_lock_whose_file_was_removed_does_not_count(tmp_path):
    path = tmp_path / "lock"
    with try_exclusive(path):
        path.unlink()
        with try_exclusive(path) as other:
            assert other is not None


def test_a_record_of_a_failure_from_before_does_not_count(model, node_cache):
    with serving() as web:
        digest = push(model, f"{web.url}/m").digest
        folder = open_folder(node_cache)
        record = {"boot": "00", "at_s": 1e12, "class": "AccessError", "what": "x", "seen": None, "remedy": ""}
        (folder.part("failed") / digest).write_text(json.dumps(record))
        assert contents(pull(f"{web.url}/m")) == contents(model)


def test_what_cannot_fit_removes_nothing(tmp_path, node_cache, monkeypatch):
    """A description that says it is huge must not cost the entries that are there."""
    with obtain(make_tree(tmp_path / "a", MB, 1).as_uri()) as held:
        digest = held.digest
    folder = open_folder(node_cache)
    with pytest.raises(DiskFullError, match="not enough room"):
        room.make(folder, 1 << 60)
    assert [one.digest for one in entries.entries(folder)] == [digest]


def test_leftovers_of_killed_fetches_go_before_entries_do(tmp_path, node_cache, monkeypatch):
    with obtain(make_tree(tmp_path / "a", MB, 1).as_uri()) as held:
        digest = held.digest
    folder = open_folder(node_cache)
    left = folder.part("partial") / ("1" * 64)
    left.mkdir()
    free = iter([0])
    monkeypatch.setattr(room, "free_bytes", lambda folder: next(free, 1 << 40))
    room.make(folder, 10)
    assert not left.exists()
    assert [one.digest for one in entries.entries(folder)] == [digest]


def test_whoever_looks_whether_an_entry_is_used_does_not_hide_it(tmp_path, node_cache):
    """`cache ls` has a lease alone for a moment; a load that comes just then finds the entry all the same."""
    with obtain(make_tree(tmp_path / "a", MB, 1).as_uri()) as held:
        digest = held.digest
    folder = open_folder(node_cache)
    looking = try_exclusive(folder.entry(digest) / "lease")
    assert looking is not None
    threading.Timer(0.1, looking.release).start()
    with obtain(f"file:///nowhere@{digest}") as found:
        assert found.digest == digest


def test_an_entry_is_in_use_from_its_first_moment(tmp_path, node_cache, monkeypatch):
    real, removed = Path.rename, []

    def rename(self, target):
        result = real(self, target)
        if Path(target).parent.name == "entries":
            removed.append(entries.remove_unused(open_folder(node_cache), Path(target).name))
        return result

    monkeypatch.setattr(Path, "rename", rename)
    with obtain(make_tree(tmp_path / "a", MB, 1).as_uri()) as held:
        assert contents(held.path) == contents(tmp_path / "a")
    assert removed == [False]


def test_a_forked_child_does_not_keep_a_fetch_locked(tmp_path):
    """The process that fetches forks and dies; its child lives on, and does not fetch."""
    path = tmp_path / "lock"
    code = """
import os, sys
from pathlib import Path
from glowplug.store.node_cache.locks import try_exclusive
lock = try_exclusive(Path(sys.argv[1]))
reading, writing = os.pipe()
if os.fork() == 0:
    os.write(writing, b"x")
    sys.stdin.read()
    os._exit(0)
os.read(reading, 1)
print("forked", flush=True)
os._exit(9)
"""
    child = start(code, str(path))
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "forked\n"
        child.wait(60)
        with try_exclusive(path) as lock:
            assert lock is not None
    finally:
        child.communicate()


def test_nothing_is_removed_where_nobody_knows_what_is_used(tmp_path, node_cache, monkeypatch):
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    with obtain(make_tree(tmp_path / "a", MB, 1).as_uri()) as held:
        digest = held.digest
    folder = open_folder(node_cache)
    (folder.part("partial") / ("1" * 64)).mkdir()
    with monkeypatch.context() as patched:
        patched.setattr(fcntl, "flock", refuse)
        assert room.prune(folder, max_bytes=0) == []
        assert room.used_digests(folder) == {digest}
        room.sweep(folder)
    assert (node_cache / "partial" / ("1" * 64)).exists()
    assert len(room.prune(folder, max_bytes=0)) == 1


def test_records_that_a_power_cut_filled_with_zeros_are_passed_by(model, tmp_path, node_cache):
    with obtain(model.as_uri()) as held:
        digest = held.digest
    for record in (node_cache / "plain").iterdir():
        record.write_bytes(bytes(64))
    (node_cache / "entries" / digest / "origin").write_bytes(b"\xff\xfe" * 8)
    with obtain(model.as_uri()) as held:
        assert contents(held.path) == contents(model)
    room.prune(open_folder(node_cache), max_bytes=0)
    room.sweep(open_folder(node_cache))
    assert list((node_cache / "plain").iterdir()) == []


def test_what_is_no_ordinary_file_is_damaged(model, node_cache, tmp_path):
    with obtain(model.as_uri()) as held:
        weights = held.path / "weights.bin"
        weights.rename(tmp_path / "moved")
        weights.symlink_to(tmp_path / "moved")
        with obtain(f"{model.as_uri()}@{held.digest}") as again:
            assert any("no ordinary file" in note for note in again.notes)
            assert not (again.path / "weights.bin").is_symlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give links away")
def test_a_link_of_another_user_is_not_followed(model, tmp_path, monkeypatch):
    (tmp_path / "ours").mkdir(mode=0o700)
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "ours")
    monkeypatch.setenv("GLOWPLUG_NODE_CACHE_DIR", str(link))
    pull(model.as_uri())
    os.lchown(link, 65533, 65533)
    with pytest.raises(StorageError, match="belongs to another user"):
        pull(model.as_uri())


def test_a_fetch_that_makes_no_progress_is_named(model, node_cache, monkeypatch):
    """A process that was stopped holds the lock; whoever waits says which process that is, and ends."""
    monkeypatch.setattr(waiting, "_STALLED_S", 0.05)
    folder = open_folder(node_cache)
    turn = waiting.wait_for(folder, "k" * 64, lambda: None, lambda: 0)
    with turn, pytest.raises(StorageError, match=f"process {os.getpid()} holds"):
        waiting.wait_for(folder, "k" * 64, lambda: None, lambda: 0)


def test_an_entry_that_goes_while_it_is_checked_is_not_damaged(model, node_cache):
    with obtain(model.as_uri()) as held:
        digest = held.digest
    room.prune(open_folder(node_cache), max_bytes=0)
    assert entries.verify(open_folder(node_cache), digest) == []
