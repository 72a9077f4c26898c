"""A child that was forked ahead of its request, and the trial that finds out what to make ready in it.

Forking a process of TensorFlow's size takes as long as starting a Python. A standby that has nothing else to do forks
its next child, which waits. It is a child like any other, except that its request comes through a socket.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import signal
from collections.abc import Callable, Sequence

from . import footprint, wire
from .child import Child

_TRIAL_S = 30
_NO_DEVICES = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")

Footprint = tuple[footprint.Ranges, footprint.Ranges]


class Spare:
    """The standby's end."""

    def __init__(self, pid: int, connection: wire.Socket) -> None:
        self.pid = pid
        self._connection = connection

    def take(self, client: wire.Socket, body: int, descriptors: Sequence[int]) -> bool:
        """Hand it a request. False means that it did not get it, and that it is gone."""
        try:
            wire.send(self._connection, {"do": "run"}, [client.fileno(), body, *descriptors])
        except OSError:
            self.end()
            return False
        self.forget()
        return True

    def end(self) -> None:
        """End it; it has nothing to lose."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
        self.forget()

    def forget(self) -> None:
        """Close this end. A spare that nobody can reach any more ends itself."""
        self._connection.close()


def wait(connection: wire.Socket, ready: Footprint) -> Child:
    """Be the spare: make the pages ready, and return once there is a request. Runs in the child."""
    _plain_signals()
    footprint.prepare(*ready)
    message, descriptors = wire.receive(connection)
    connection.close()
    if message is None:
        os._exit(0)
    client, body, *rest = descriptors
    request = wire.read_memory_file(body)
    os.close(body)
    return Child(wire.Socket(fileno=client), request, rest)


class Trial:
    """A child that does what a program would do first, and tells which pages that took."""

    def __init__(self, pid: int, descriptor: int) -> None:
        self.pid = pid
        self.descriptor = descriptor
        self._told = b""

    def hear(self) -> Footprint | None:
        """Read what it says; None means that there is more to come. A trial that failed gives an empty footprint."""
        part = os.read(self.descriptor, 1 << 16)
        self._told += part
        if part:
            return None
        os.close(self.descriptor)
        return marshal.loads(self._told) if self._told else ([], [])


def begin_trial(exercise: Callable[[], None]) -> Trial:
    """Fork a trial. The caller hears it, and reaps it as it does its other children."""
    readable, writable = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid:
        os.close(writable)
        return Trial(pid, readable)
    try:
        _plain_signals()
        signal.alarm(_TRIAL_S)  # its default action ends the process
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(nothing, number)
        os.environ.update(dict.fromkeys(_NO_DEVICES, "-1"))
        places = footprint.mappings()
        exercise()
        told = memoryview(marshal.dumps(footprint.touched(places)))
        while told:
            told = told[os.write(writable, told) :]
    finally:
        os._exit(0)  # what went wrong makes no difference to anybody but the next program's speed


def _plain_signals() -> None:
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
