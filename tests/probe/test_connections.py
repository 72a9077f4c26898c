"""The first connection that a program accepts ends its cold start."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.probe.profiling import check

from glowplug.core.profile import Profile
from glowplug.probe.run import profile_target

ASYNC = """
import asyncio
{before}

async def main():
    done = asyncio.Event()

    class Server(asyncio.Protocol):
        def connection_made(self, transport):
            transport.close()
            done.set()

    loop = asyncio.get_running_loop()
    server = await loop.create_server(Server, "127.0.0.1", 0)
    _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    await done.wait()
    await asyncio.sleep(0.1)
    writer.close()
    server.close()

{run}
"""

PAIR = """
import os, socket, tempfile, threading, time
with tempfile.TemporaryDirectory() as folder:
    name = os.path.join(folder, "socket")
    server = socket.socket(socket.AF_UNIX)
    server.bind(name)
    server.listen()
    client = socket.socket(socket.AF_UNIX)
    client.connect(name)
    server.accept()
"""

FORKED = """
import os, socket
server = socket.create_server(("127.0.0.1", 0))
child = os.fork()
if child == 0:
    connection, _ = server.accept()
    connection.close()
    os._exit(0)
socket.create_connection(server.getsockname()).close()
os.waitpid(child, 0)
"""


def profiled(tmp_path: Path, code: str) -> Profile:
    path = tmp_path / "target.py"
    path.write_text(code)
    profile = profile_target([str(path)])
    check(profile)
    assert profile.exit_code == 0
    return profile


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_of_a_server(tmp_path: Path, loop: str) -> None:
    pytest.importorskip(loop)
    run = "uvloop.run(main())" if loop == "uvloop" else "asyncio.run(main())"
    profile = profiled(tmp_path, ASYNC.format(before=f"import {loop}", run=run))
    (first,) = profile.of_kind("connection")
    assert (profile.cold_start.until, profile.cold_start.ns) == ("the first accepted connection", first.start_ns)
    assert first.start_ns < profile.wall_ns


def test_in_a_forked_worker(tmp_path: Path) -> None:
    profile = profiled(tmp_path, FORKED)
    (first,) = profile.of_kind("connection")
    assert first.pid != profile.root_pid
    assert profile.cold_start.ns == first.start_ns


def test_processes_of_one_machine_that_talk_are_no_service(tmp_path: Path) -> None:
    assert not [*profiled(tmp_path, PAIR).of_kind("connection")]
