"""Waiting on files, names, sockets, databases, sleeps and threads is told apart from work."""

from __future__ import annotations

from pathlib import Path

from tests.probe.profiling import check

from glowplug.core.profile import Span
from glowplug.probe.run import profile_target


def waits_of(tmp_path: Path, code: str) -> dict[str, Span]:
    path = tmp_path / "target.py"
    path.write_text(code)
    profile = profile_target([str(path)])
    check(profile)
    assert profile.exit_code == 0
    longest: dict[str, Span] = {}
    for span in profile.of_kind("io"):
        assert span.phase == "io_wait"
        known = longest.get(span.attrs["io"])
        if known is None or span.duration_ns > known.duration_ns:
            longest[span.attrs["io"]] = span
    return longest


def test_sleep(tmp_path: Path) -> None:
    sleep = waits_of(tmp_path, "import time\n\ntime.sleep(0.2)\n")["sleep"]
    assert sleep.duration_ns > 0.19e9
    assert sleep.attrs["site"] == f"{tmp_path / 'target.py'}:3"


def test_sockets(tmp_path: Path) -> None:
    code = """
import socket, threading, time
server = socket.create_server(("127.0.0.1", 0))
def serve():
    connection, _ = server.accept()
    time.sleep(0.2)
    connection.sendall(b"x" * 100)
    connection.close()
threading.Thread(target=serve).start()
client = socket.create_connection(server.getsockname())
assert client.recv(1000) == b"x" * 100
"""
    wait = waits_of(tmp_path, code)["socket"]
    assert wait.duration_ns > 0.15e9
    assert wait.attrs["bytes"] == 100
    assert wait.attrs["target"].startswith("127.0.0.1:")


def test_name_resolution(tmp_path: Path) -> None:
    code = """
import socket, time
slow = socket._socket.getaddrinfo
def getaddrinfo(*args):
    time.sleep(0.1)
    return []
socket._socket.getaddrinfo = getaddrinfo
socket.getaddrinfo("models.example", 443)
"""
    wait = waits_of(tmp_path, code)["dns"]
    assert wait.attrs["target"] == "models.example"
    assert wait.duration_ns > 0.09e9


def test_database(tmp_path: Path) -> None:
    code = """
import sqlite3
connection = sqlite3.connect(":memory:")
assert isinstance(connection, sqlite3.Connection) and type(connection).__name__ == "Connection"
query = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 300000) SELECT count(*) FROM n"
assert connection.execute(query).fetchone() == (300000,)
cursor = connection.cursor()
assert isinstance(cursor, sqlite3.Cursor)
assert cursor.execute(query).fetchone() == (300000,)
"""
    wait = waits_of(tmp_path, code)["database"]
    assert wait.attrs["target"].startswith("WITH RECURSIVE")


def test_file(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(bytes(64 << 20))
    wait = waits_of(tmp_path, f"import pathlib\npathlib.Path({str(tmp_path / 'big')!r}).read_bytes()\n")["file"]
    assert wait.attrs["bytes"] == 64 << 20
    assert wait.attrs["target"] == str(tmp_path / "big")


def test_another_thread(tmp_path: Path) -> None:
    code = """
import threading, time
thread = threading.Thread(target=time.sleep, args=(0.2,), name="worker")
thread.start()
thread.join()
"""
    wait = waits_of(tmp_path, code)["lock"]
    assert wait.attrs["target"] == "thread worker"
    assert wait.duration_ns > 0.15e9


def test_event_loop(tmp_path: Path) -> None:
    wait = waits_of(tmp_path, "import asyncio\nasyncio.run(asyncio.sleep(0.2))\n")["event_loop"]
    assert wait.duration_ns > 0.15e9
