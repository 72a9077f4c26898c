"""`glowplug run --standby` as a job of an interactive shell: Ctrl-Z, `jobs`, `fg`, `bg` and Ctrl-C."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.tensorflow

SHELLS = {"bash": ["bash", "--norc", "--noprofile", "-i"], "dash": ["dash", "-i"]}
PROGRAM = """
import os, signal, sys
signal.signal(signal.SIGCONT, lambda *_: print('continued', flush=True))
print('ready', os.getpid(), os.getppid(), flush=True)
while True:
    print('read', sys.stdin.readline().strip(), flush=True)
"""


class Shell:
    """An interactive shell on a terminal of its own."""

    def __init__(
        self, command: list[str], environment: dict[str, str], folder: Path, *, hangup: Any = signal.SIG_DFL
    ) -> None:
        self.outer, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("4H", 50, 1000, 0, 0))  # or bash cuts the lines it echoes

        def own_the_terminal() -> None:
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
            signal.signal(signal.SIGHUP, hangup)

        self.process = subprocess.Popen(
            command,
            env=environment,
            cwd=folder,
            stdin=inner,
            stdout=inner,
            stderr=inner,
            preexec_fn=own_the_terminal,  # noqa: PLW1509 - no other thread runs here
        )
        os.close(inner)
        self.seen = ""
        self.expect("SHELL> ")

    def type(self, text: str) -> None:
        os.write(self.outer, text.encode())

    def command(self, line: str) -> None:
        """Give the shell a command. Its echo is not what it prints."""
        self.type(f"{line}\n")
        self.expect(line)

    def expect(self, text: str) -> str:
        """Wait for a text; return what came before it, and forget both."""
        end = time.monotonic() + 30
        while text not in self.seen:
            ready, _, _ = select.select([self.outer], [], [], max(0, end - time.monotonic()))
            assert ready, f"{text!r} is not in {self.seen!r}"
            self.seen += os.read(self.outer, 65536).decode()
        before, _, self.seen = self.seen.partition(text)
        return before

    def close(self) -> None:
        os.killpg(self.process.pid, signal.SIGHUP)
        self.process.kill()
        self.process.wait()
        os.close(self.outer)


@pytest.fixture(scope="module")
def warm(make_standby: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with tempfile.TemporaryDirectory(prefix="standby-") as directory:
        Path(directory).chmod(0o700)
        found = make_standby(Path(directory), tmp_path_factory.mktemp("scripts"))
        found.script(PROGRAM)
        started = found.glowplug("standby", "start")
        assert started.returncode == 0, started.stderr
        yield found
        found.glowplug("standby", "stop")


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest, warm: Any) -> Iterator[Shell]:
    if shutil.which(request.param) is None:
        pytest.skip(f"there is no {request.param} here")
    environment = {**warm.environment, "PS1": "SHELL> ", "TERM": "dumb"}
    opened = Shell(SHELLS[request.param], environment, warm.scripts)
    try:
        yield opened
    finally:
        opened.close()


def begin(shell: Shell) -> tuple[int, int]:
    """Run the program in the foreground; return its number and the standby's."""
    shell.command(f"{shlex.quote(sys.executable)} -m glowplug run --standby program.py")
    shell.expect("ready ")
    program, parent = shell.expect("\r\n").split()
    return int(program), int(parent)


def stop(shell: Shell, program: int) -> None:
    # Not before it waits for a line: a signal that arrives just before a read does not interrupt it, and Python would
    # run the program's handler only when the read has ended.
    end = time.monotonic() + 30
    while state(program) != "S":
        assert time.monotonic() < end, f"the program does not wait for a line: {state(program)}"
        time.sleep(0.01)
    shell.type("\x1a")
    shell.expect("Stopped")
    shell.expect("SHELL> ")
    assert state(program) == "T"
    shell.command("jobs")
    assert "Stopped" in shell.expect("SHELL> ")


def interrupt(shell: Shell) -> None:
    shell.type("\x03")
    shell.expect("KeyboardInterrupt")
    shell.expect("SHELL> ")
    shell.command("echo code=$?")
    shell.expect("code=130")


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_stopped_program_goes_on_in_the_foreground(shell, warm):
    program, parent = begin(shell)
    assert parent in warm.pids()  # it does run through the standby
    shell.type("one\n")
    shell.expect("read one")
    for line in ("two", "three"):
        stop(shell, program)
        shell.command("fg")
        shell.expect("continued")
        shell.type(f"{line}\n")
        shell.expect(f"read {line}")
    interrupt(shell)
    assert not Path(f"/proc/{program}").exists()


def test_a_stopped_program_goes_on_in_the_background(shell, warm, wait_until):
    program, _ = begin(shell)
    stop(shell, program)
    shell.command("bg")
    shell.expect("continued")
    shell.type("\n")
    shell.expect("SHELL> ")
    shell.command("jobs")
    assert "Running" in shell.expect("SHELL> ")
    assert state(program) != "T"
    shell.command("echo what the shell reads $((20 + 3))")  # the terminal is the shell's
    shell.expect("reads 23")
    shell.command("fg")
    shell.expect("program.py")
    wait_until(lambda: is_raw(shell))
    shell.type("four\n")
    shell.expect("read four")
    interrupt(shell)


def test_a_program_in_the_background_leaves_the_terminal_and_the_processor_alone(shell, wait_until):
    program, _ = begin(shell)
    stop(shell, program)
    shell.command("bg")
    shell.expect("continued")
    client = group_leader(shell)
    began = processor_ticks(client)
    shell.command("sleep 1; read line; echo line=$line")
    shell.type("for the shell\n")  # it lies there for a second in which nobody reads it
    shell.expect("line=for the shell")
    spent = processor_ticks(client) - began
    shell.command("fg")
    wait_until(lambda: os.tcgetpgrp(shell.outer) == client)
    interrupt(shell)
    assert spent < 20


@pytest.mark.parametrize("hangup", [signal.SIG_DFL, signal.SIG_IGN])
def test_a_terminal_that_is_gone_is_gone_for_the_program_too(warm, wait_until, hangup):
    environment = {**warm.environment, "PS1": "SHELL> ", "TERM": "dumb"}
    shell = Shell(SHELLS["bash"], environment, warm.scripts, hangup=hangup)
    try:
        program, _ = begin(shell)
        client = group_leader(shell)
    finally:
        shell.close()
    wait_until(lambda: not Path(f"/proc/{program}").exists())
    wait_until(lambda: not Path(f"/proc/{client}").exists() or state(client) == "Z")


def group_leader(shell: Shell) -> int:
    """Return the one job of the shell."""
    return int(Path(f"/proc/{shell.process.pid}/task/{shell.process.pid}/children").read_text())


def processor_ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def is_raw(shell: Shell) -> bool:
    return not termios.tcgetattr(shell.outer)[3] & termios.ICANON
