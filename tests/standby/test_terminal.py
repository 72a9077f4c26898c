"""A program behind a terminal: the client's pty carries keys, signals and the window's size."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time

import pytest


class Shell:
    """A terminal with one job in its foreground, as a shell would run it."""

    def __init__(self, standby, code: str) -> None:
        standby.run("-c", "pass")
        self.outer, inner = pty.openpty()
        self.settings = termios.tcgetattr(inner)
        self.resize(24, 80)

        def own_the_terminal() -> None:
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        command = standby.command("-c", code)
        self.process = subprocess.Popen(
            command,
            env=standby.environment,
            stdin=inner,
            stdout=inner,
            stderr=inner,
            preexec_fn=own_the_terminal,  # noqa: PLW1509 - no other thread runs here
        )
        os.close(inner)
        self.seen = ""

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.outer, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))

    def type(self, text: str) -> None:
        os.write(self.outer, text.encode())

    def expect(self, text: str) -> None:
        end = time.monotonic() + 20
        while text not in self.seen:
            ready, _, _ = select.select([self.outer], [], [], max(0, end - time.monotonic()))
            assert ready, f"{text!r} is not in {self.seen!r}"
            try:
                self.seen += os.read(self.outer, 65536).decode()
            except OSError:
                assert text in self.seen, self.seen
                return
        self.seen = self.seen.partition(text)[2]

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.outer)


@pytest.fixture
def shell(standby):
    opened = []

    def start(code: str) -> Shell:
        opened.append(Shell(standby, code))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


def test_streams_are_terminals_and_lines_are_edited(shell):
    code = """
import os
print([os.isatty(n) for n in range(3)], os.ttyname(0) == os.ttyname(1))
print('=' + input() + '=')
"""
    one = shell(code)
    one.expect("[True, True, True] True")
    one.type("abx\x7fc\r")
    one.expect("=abc=")
    assert one.process.wait(20) == 0
    assert termios.tcgetattr(one.outer)[3] == one.settings[3]


def test_the_terminal_is_the_programs_own(shell):
    one = shell(
        "import os; f = open('/dev/tty', 'w'); f.write('direct\\n'); f.close(); print(os.tcgetpgrp(0) == os.getpgrp())"
    )
    one.expect("direct")
    one.expect("True")


def test_control_c_interrupts(shell):
    code = """
import time
try:
    print('ready', flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    print('caught')
    raise
"""
    one = shell(code)
    one.expect("ready")
    one.type("\x03")
    one.expect("caught")
    assert one.process.wait(20) == -signal.SIGINT


def test_the_windows_size_follows(shell):
    code = """
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGWINCH])
print('first', tuple(os.get_terminal_size()), flush=True)
signal.sigwait([signal.SIGWINCH])
print('then', tuple(os.get_terminal_size()), flush=True)
"""
    one = shell(code)
    one.expect("first (80, 24)")
    one.resize(30, 100)
    one.expect("then (100, 30)")
    assert one.process.wait(20) == 0


def test_control_z_stops_the_program(shell, wait_until):
    """The client is alone in its session here, so the kernel does not let it stop: both go straight on."""
    code = """
import signal
signal.signal(signal.SIGCONT, lambda *_: print('continued', flush=True))
print('ready', flush=True)
print('read', input(), flush=True)
"""
    one = shell(code)
    one.expect("ready")
    one.type("\x1a")
    one.expect("continued")
    one.type("more\r")
    one.expect("read more")
    assert one.process.wait(20) == 0


def test_much_output_arrives_whole(shell):
    one = shell("print('x' * 300000 + 'end')")
    one.expect("xend")
    assert one.process.wait(20) == 0
