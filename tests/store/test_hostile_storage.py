"""Storages that lie, stall, break off or change under our hands: never a wrong byte, and never for ever."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from glowplug.core.errors import DamagedObjectError, ObjectNotFoundError, StorageError, UnreachableError
from glowplug.store import sources
from glowplug.store import tree as trees
from glowplug.store.backends import web as web_backend
from glowplug.store.backends.local import LocalBackend
from glowplug.store.backends.web import WebBackend
from glowplug.store.pull import obtain, pull
from glowplug.store.push import push
from glowplug.store.transfer import assembly
from glowplug.store.transfer.workers import Gate, StoppedError, Workers
from tests.components.relay import relaying
from tests.fakes.web_server import serving
from tests.store.conftest import MB, contents

SOURCE = Path(__file__).parents[2] / "src"


def test_an_answer_that_breaks_off_is_asked_for_again(model, monkeypatch):
    """A server that dies in the middle of an answer says nothing about what it stores."""
    with serving() as web, relaying(int(web.url.rpartition(":")[2])) as relay:
        push(model, f"{web.url}/m")
        relay.cut_after_bytes = 3 * MB
        monkeypatch.setenv("GLOWPLUG_RETRIES", "0")
        with pytest.raises(UnreachableError):
            pull(f"http://127.0.0.1:{relay.port}/m")
        relay.cut_after_bytes = None
        monkeypatch.setenv("GLOWPLUG_RETRIES", "3")
        assert contents(pull(f"http://127.0.0.1:{relay.port}/m")) == contents(model)


def test_an_answer_shorter_than_it_says_is_not_the_end_of_the_object():
    head = b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-9/10\r\nContent-Length: 10\r\n\r\n"
    with answering(head + b"12345") as url, pytest.raises(UnreachableError, match="ended after 5 of 10"):
        WebBackend(url).read("a", 0, 10)


def test_an_answer_that_was_compressed_is_refused():
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\n"
    with answering(head + b"12345") as url, pytest.raises(StorageError, match="compressed"):
        WebBackend(url).read("a", 0, 5)


def test_an_answer_that_trickles_has_an_end(monkeypatch):
    monkeypatch.setattr(web_backend, "_LONGEST_S", 0.0)
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"
    with answering(head + b"1") as url, pytest.raises(UnreachableError, match="no end after"):
        WebBackend(url).read("a", 0, 100)


@pytest.mark.parametrize("length", ["9" * 5000, "9" * 19, "-5", "٣", ""])
def test_a_length_that_cannot_be_is_refused(length):
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n".encode()
    with answering(head) as url, pytest.raises(StorageError):
        WebBackend(url).size("a")


def test_more_than_a_model_has_is_refused_before_it_is_cut(monkeypatch):
    monkeypatch.setattr(sources, "cut", lambda size: pytest.fail("it was cut"))
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 999999999999999\r\nConnection: close\r\n\r\n"
    missing = b"HTTP/1.1 404 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    with answering(missing, head) as url, pytest.raises(StorageError, match="more under this URL than one model has"):
        pull(f"{url}/model.keras")


@pytest.mark.parametrize("target", ["ftp://host/a", "gopher://host/a"])
def test_a_redirection_to_elsewhere_is_not_followed(target):
    with serving() as web:
        web.faults = [(302, {"Location": target})]
        with pytest.raises(StorageError) as caught:
            WebBackend(web.url).read("a", 0, 1)
        assert not isinstance(caught.value, UnreachableError)


def test_a_redirection_is_not_followed_to_a_less_safe_way():
    handler = web_backend._Redirections()
    request = web_backend.urllib.request.Request("https://host/a")
    with pytest.raises(StorageError, match="does not follow"):
        handler.redirect_request(request, None, 302, "", {}, "http://host/a?secret=1")


def test_a_host_that_cannot_be_one_is_said():
    with pytest.raises(StorageError, match="name of a host"):
        WebBackend(f"http://{'a' * 70}").size("a")


def test_a_server_without_ranges_is_not_asked_for_every_chunk_many_times(model, monkeypatch):
    """It sends all that lies before a piece, too; so once that shows, a chunk is one piece."""
    monkeypatch.setenv("GLOWPLUG_CONNECTIONS", "1")
    with serving() as web:
        push(model, f"{web.url}/m", boundaries={"weights.bin": [0]})
        web.knows_ranges = False
        assert contents(pull(f"{web.url}/m")) == contents(model)
        chunks = [name for name in web.objects if trees.POOL in name and not name.endswith(".json")]
        asked = [path for method, path in web.requests if method == "GET" and path in chunks]
        assert len(asked) <= len(chunks) + 2


def test_two_versions_of_a_file_are_never_mixed(monkeypatch):
    """Where the storage has nothing that tells a change, what an earlier attempt fetched does not count."""
    monkeypatch.setenv("GLOWPLUG_RETRIES", "0")
    monkeypatch.setenv("GLOWPLUG_CONNECTIONS", "1")
    monkeypatch.setattr(assembly.random, "sample", lambda parts, count: list(parts))
    monkeypatch.setattr(WebBackend, "_look", without_tag(WebBackend._look))
    old, new = random.Random(1).randbytes(5 * MB), random.Random(2).randbytes(5 * MB)
    with serving() as web:
        web.objects["/model.keras"] = old
        answers = iter([False] * 5 + [True])

        class Breaking(list):
            def __bool__(self) -> bool:
                return next(answers, False)

        web.faults = Breaking([(503, {})])
        with pytest.raises(UnreachableError):
            pull(f"{web.url}/model.keras")
        assert any(path == "/model.keras" and size for path, size in web.sent)
        web.objects["/model.keras"] = new
        assert pull(f"{web.url}/model.keras").read_bytes() == new


def test_a_file_that_became_shorter_while_it_was_read_is_read_again(model, monkeypatch):
    real, changed = LocalBackend.read, []

    def read(self, path, start, end):
        if path.endswith("weights.bin") and not changed:
            changed.append(path)
            (model / "weights.bin").write_bytes(b"shorter")
        return real(self, path, start, end)

    monkeypatch.setattr(LocalBackend, "read", read)
    assert contents(pull(model.as_uri())) == contents(model)


def test_a_file_that_went_away_while_it_was_read_is_not_fetched(model, monkeypatch):
    real, changed = LocalBackend.read, []

    def read(self, path, start, end):
        if path.endswith("vocabulary.txt") and not changed:
            changed.append(path)
            (model / "assets" / "vocabulary.txt").unlink()
        return real(self, path, start, end)

    monkeypatch.setattr(LocalBackend, "read", read)
    assert contents(pull(model.as_uri())) == contents(model)


def test_a_pinned_url_does_not_need_the_published_description(model, tmp_path):
    url = (tmp_path / "storage" / "m").as_uri()
    digest = push(model, url).digest
    (tmp_path / "storage" / "m" / trees.NAME).write_bytes(b'{"format": 99}')
    assert contents(pull(f"{url}@{digest}")) == contents(model)
    with pytest.raises(DamagedObjectError, match="its format is 99"):
        pull(url)


def test_a_pinned_url_never_accepts_another_version(model, tmp_path):
    url = (tmp_path / "storage" / "m").as_uri()
    digest = push(model, url).digest
    (model / "bundle.json").write_text("another")
    push(model, url)
    pool = tmp_path / "storage" / trees.POOL
    (pool / f"{digest}.json").write_bytes((tmp_path / "storage" / "m" / trees.NAME).read_bytes())
    with pytest.raises(ObjectNotFoundError, match="does not have the version"):
        pull(f"{url}@{digest}")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_cannot_be_read_is_not_left_out(model, tmp_path):
    (model / "assets").chmod(0)
    try:
        with pytest.raises(StorageError, match="assets"):
            push(model, (tmp_path / "storage" / "m").as_uri())
    finally:
        (model / "assets").chmod(0o700)


def test_a_link_to_a_folder_is_not_left_out(model, tmp_path):
    (tmp_path / "shared").mkdir()
    (model / "more").symlink_to(tmp_path / "shared", target_is_directory=True)
    with pytest.raises(StorageError, match="a link to a folder") as caught:
        push(model, (tmp_path / "storage" / "m").as_uri())
    assert caught.value.exit_code == 4
    assert not (tmp_path / "storage" / "m").exists()


def test_a_file_that_changes_while_it_is_pushed_is_not_published(model, tmp_path, monkeypatch):
    url = (tmp_path / "storage" / "m").as_uri()
    real = LocalBackend.write

    def write(self, path, data):
        with (model / "weights.bin").open("r+b") as stream:
            stream.write(os.urandom(8))
        real(self, path, data)

    monkeypatch.setattr(LocalBackend, "write", write)
    monkeypatch.setenv("GLOWPLUG_CONNECTIONS", "1")
    with pytest.raises(StorageError, match="changed while it was pushed"):
        push(model, url)
    assert not (tmp_path / "storage" / "m" / trees.NAME).exists()


@pytest.mark.parametrize("verb", ["pull", "push"])
def test_an_interrupt_does_not_wait_for_a_storage_that_stalls(verb, model, tmp_path):
    """The chunks never come, or are never taken; the process ends at once all the same."""
    stalled, go_on = threading.Event(), threading.Event()
    with serving() as web:
        push(model, f"{web.url}/m")

        class Stalling(list):
            def __bool__(self) -> bool:
                if trees.POOL in web.requests[-1][1]:
                    stalled.set()
                    go_on.wait(120)
                return False

        web.faults = Stalling()
        (model / "bundle.json").write_text("another")
        code = f"""
import sys
from pathlib import Path
from glowplug.store.pull import pull
from glowplug.store.push import push
try:
    pull("{web.url}/m") if "{verb}" == "pull" else push(Path("{model}"), "{web.url}/m")
except KeyboardInterrupt:
    sys.exit(130)
"""
        child = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(SOURCE)})
        try:
            assert stalled.wait(60)
            child.send_signal(signal.SIGINT)
            assert child.wait(20) == 130  # the answer would come after two minutes
        finally:
            child.kill()
            child.wait()
            go_on.set()


def test_who_gave_up_writes_nothing_more():
    gate, inside, leave = Gate(), threading.Event(), threading.Event()
    written: list[str] = []

    def write() -> None:
        with gate.passed():
            inside.set()
            leave.wait(60)
            written.append("first")

    thread = threading.Thread(target=write)
    thread.start()
    assert inside.wait(60)
    threading.Timer(0.05, leave.set).start()
    gate.close()
    assert written == ["first"]
    with pytest.raises(StoppedError), gate.passed():
        written.append("second")
    thread.join()
    assert written == ["first"]


def test_workers_tell_the_first_failure_and_take_nothing_more():
    done: list[int] = []

    def fail() -> None:
        raise OSError("no")

    ticks: list[None] = []
    with Workers(1, "test", lambda: ticks.append(None)) as workers:
        workers.add(lambda: done.append(1))
        workers.add(fail)
        with pytest.raises(OSError, match="no"):
            workers.wait()
    with Workers(2, "test", lambda: None) as workers:
        for number in range(10):
            workers.wait(3)
            workers.add(lambda number=number: done.append(number))
        workers.wait()
    assert sorted(done) == sorted([1, *range(10)])
    assert ticks


def test_a_fetch_that_failed_leaves_no_threads_or_descriptors(model, monkeypatch):
    monkeypatch.setenv("GLOWPLUG_RETRIES", "0")
    with serving() as web:
        push(model, f"{web.url}/m")
        names = [name for name in web.objects if trees.POOL in name and not name.endswith(".json")]
        for name in names[:2]:
            web.objects[name] = web.objects[name][:-1]
        for attempt in range(4):
            with pytest.raises(DamagedObjectError):
                obtain(f"{web.url}/m")
            for thread in threading.enumerate():
                if thread.name == "glowplug-pull":
                    thread.join(60)
            if attempt == 0:
                before = len(list(Path("/proc/self/fd").iterdir()))
        deadline = time.monotonic() + 30
        while len(list(Path("/proc/self/fd").iterdir())) > before + 2 and time.monotonic() < deadline:
            time.sleep(0.05)  # the server's own side of connections
        assert len(list(Path("/proc/self/fd").iterdir())) <= before + 2


def without_tag(look):
    from dataclasses import replace

    return lambda self, path: replace(look(self, path), tag="")


class answering:
    """A server that gives these answers, one a connection, and closes it."""

    def __init__(self, *answers: bytes) -> None:
        self._answers = answers
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def _serve(self) -> None:
        for answer in self._answers:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                connection.recv(1 << 16)
                connection.sendall(answer)

    def __enter__(self) -> str:
        self._thread.start()
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def __exit__(self, *_: object) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(10)
