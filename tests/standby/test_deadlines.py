"""No run waits without end for a standby, and no program is begun twice."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from glowplug.standby import connection, paths, wire

# Counts how often it was begun.
PROGRAM = "import os, sys; open(sys.argv[1], 'a').write('x'); print('ran')"


def status(standby):
    return json.loads(standby.glowplug("standby", "status", "--json").stdout)["standbys"]


@pytest.fixture
def stopped(standby):
    standby.run("-c", "pass")
    (pid,) = standby.pids()
    os.kill(pid, signal.SIGSTOP)
    yield pid
    os.kill(pid, signal.SIGKILL) if Path(f"/proc/{pid}").exists() else None


def test_a_stopped_standby_holds_nobody_up(standby, stopped):
    done = standby.run("-c", "print('ran')", start=False, timeout=20)
    assert done.stderr == f"not run: the standby (process {stopped}) is stopped\n"


def test_whoever_did_not_ask_hears_of_a_stopped_standby(standby):
    started = standby.glowplug("standby", "start")
    assert started.returncode == 0, started.stderr
    (pid,) = standby.pids()
    os.kill(pid, signal.SIGSTOP)
    done = standby.glowplug("run", "-c", "print('ran')")
    assert (done.stdout, done.stderr) == ("ran\n", f"glowplug: standby: the standby (process {pid}) is stopped\n")
    os.kill(pid, signal.SIGCONT)


def test_status_and_stop_deal_with_a_stopped_standby(standby, stopped):
    (one,) = status(standby)
    assert (one["pid"], one["problem"], one["differs"]) == (stopped, "it is stopped", "")
    assert (
        f"stopped {one['name']} (process {stopped}, which did not answer)" in standby.glowplug("standby", "stop").stdout
    )
    assert list(standby.directory.iterdir()) == []


def silent_standby(standby):
    """Take the place of the standby with a socket that accepts and never answers."""
    (one,) = status(standby)
    os.kill(one["pid"], signal.SIGKILL)
    path = standby.directory / f"{one['name']}.sock"
    path.unlink()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    folder = os.open(standby.directory, os.O_RDONLY)
    listener.bind(f"/proc/self/fd/{folder}/{path.name}")  # a path itself may be too long for a socket
    os.close(folder)
    listener.listen()
    return listener


def test_one_that_never_answers_is_given_up(standby):
    standby.run("-c", "pass")
    listener = silent_standby(standby)
    code = """
from glowplug.standby.client import request
request.ANSWER_S = 1.0
from glowplug.core.target import Target
from glowplug.launch.options import Options
from glowplug.launch.warm import run_in_standby
outcome = run_in_standby(Target("code", "print('ran')"), Options(), start=False, preload=("numpy",))
print(outcome.code, outcome.note, outcome.unusual)
"""
    out = standby.scripts / "out"  # not a pipe: our listener has its end, too, as long as nobody accepts
    with out.open("w") as stream:
        subprocess.run([sys.executable, "-c", code], env=standby.environment, stdout=stream, stderr=stream, timeout=30)
    assert out.read_text() == f"None the standby (process {os.getpid()}) did not answer within 1 s True\n"
    listener.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_during_the_wait_ends_the_client(standby, number):
    standby.run("-c", "pass")
    listener = silent_standby(standby)
    process = subprocess.Popen(
        standby.command("-c", "print('ran')", start=False), env=standby.environment, stderr=subprocess.PIPE
    )
    accepted, _ = listener.accept()
    assert accepted.recv(1 << 16)
    process.send_signal(number)
    process.communicate(timeout=9)
    assert process.returncode == -number
    listener.close()


def test_a_client_that_gives_up_leaves_no_program_behind(standby, tmp_path, wait_until):
    """The child is ready and waits; its client closes the connection instead of telling it to begin."""
    mark = tmp_path / "mark"
    standby.run("-c", "pass")
    code = f"""
import sys
from glowplug.standby.client import request
def give_up(begun, until):
    return request.Declined("gave up")
request._commit = give_up
from glowplug.core.target import Target
from glowplug.launch.options import Options
from glowplug.launch.warm import run_in_standby
outcome = run_in_standby(Target("code", {PROGRAM!r}, ({str(mark)!r},)), Options(), start=False, preload=("numpy",))
print(outcome.note)
"""
    done = subprocess.run([sys.executable, "-c", code], env=standby.environment, capture_output=True, text=True)
    assert done.stdout == "gave up\n", done.stderr
    wait_until(lambda: status(standby)[0]["runs"] == [])
    assert not mark.exists()


def test_a_program_is_begun_once_whatever_is_killed_when(standby, tmp_path):
    """Kill the standby at many moments of a run: the program ran exactly once, or the client says that it did not."""
    mark = tmp_path / "mark"
    for delay_ms in (0, 5, 10, 20, 40, 80):
        mark.unlink(missing_ok=True)
        standby.run("-c", "pass")
        (pid,) = standby.pids()
        process = standby.begin("-c", PROGRAM, mark)
        time.sleep(delay_ms / 1000)
        os.kill(pid, signal.SIGKILL)
        out, err = process.communicate(timeout=60)
        assert (out, mark.read_text() if mark.exists() else "") == ("ran\n", "x"), err


def test_a_stopped_standby_does_not_keep_the_end_of_a_run_from_its_client(standby):
    process = standby.begin("-c", "import sys; print('on', flush=True); sys.stdin.readline(); sys.exit(6)")
    assert process.stdout.readline() == "on\n"
    (pid,) = standby.pids()
    os.kill(pid, signal.SIGSTOP)
    process.communicate("\n", timeout=20)
    assert process.returncode == 6
    os.kill(pid, signal.SIGCONT)


def test_starting_one_that_never_is_ready_has_an_end(standby, tmp_path, monkeypatch):
    (tmp_path / "endless.py").write_text("import time; time.sleep(60)")
    environment = {**standby.environment, "PYTHONPATH": f"{standby.environment['PYTHONPATH']}:{tmp_path}"}
    code = """
from glowplug.standby import starting
starting.READY_S = 1.0
try:
    starting.start("python", ("endless",))
except starting.StandbyError as error:
    print(error)
"""
    for wanted in ("the standby is not ready in time: 1 s", "another start of the standby has not ended: 1 s"):
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=30)
        assert done.stdout.startswith(wanted), done.stderr
        if "ready" in wanted:  # the first one still imports: it holds the turn only while somebody waits for it
            lock = next(standby.directory.glob("*.lock"))
            turn = os.open(lock.with_suffix(".turn"), os.O_RDWR)
            import fcntl

            fcntl.flock(turn, fcntl.LOCK_EX)
    os.close(turn)
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            environment_of = (entry / "environ").read_bytes()
        except OSError:
            continue
        if f"GLOWPLUG_STANDBY_DIR={standby.directory}".encode() in environment_of.split(b"\0"):
            os.kill(int(entry.name), signal.SIGKILL)


# Hostile peers of the same user.


def connected(standby):
    place = paths.Place("", os.open(standby.directory, os.O_RDONLY | os.O_DIRECTORY), "")
    found = connection.connect(place, status(standby)[0]["name"])
    place.close()
    return found


def test_garbage_on_the_socket_disturbs_nobody(standby):
    standby.run("-c", "pass")
    (pid,) = standby.pids()
    for garbage in (b"", b"x", os.urandom(100), os.urandom(60000), b"\0" * 64, wire._encoded({"do": 3})):
        peer = connected(standby)
        peer.send(garbage)
        peer.close()
    for message, descriptors in (
        ({"do": "run"}, []),
        ({"do": "run"}, [0]),
        ({"do": "run"}, os.pipe()),
        ({}, [0, 0, 0]),
    ):
        peer = connected(standby)
        wire.send(peer, message, descriptors)
        answer, _ = wire.receive(peer, until=time.monotonic() + 20)
        assert answer is None or "refused" in answer
        peer.close()
    assert standby.run("-c", "print(1)", start=False).stdout == "1\n"
    assert standby.pids() == [pid]


def test_a_thousand_connections_disturb_nobody(standby):
    standby.run("-c", "pass")
    (pid,) = standby.pids()
    name = status(standby)[0]["name"]
    place = paths.Place("", os.open(standby.directory, os.O_RDONLY | os.O_DIRECTORY), "")
    held = []
    while len(held) < 1000:
        try:
            held.append(connection.connect(place, name))
        except connection.StandbyError:
            time.sleep(0.005)  # it accepts as fast as it can
    assert standby.run("-c", "print(1)", start=False).stdout == "1\n"
    for one in held:
        one.close()
    assert standby.run("-c", "print(2)", start=False).stdout == "2\n"
    assert standby.pids() == [pid]
