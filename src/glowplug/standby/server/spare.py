"""A child that is forked ahead of its request, and what is made ready in it.

Forking a process of TensorFlow's size takes as long as starting a Python. A standby that has nothing else to do forks
its next child, which waits. It is a child like any other, except that its request comes through a socket. What programs
do first is either done in it (a rehearsal), or in a trial that tells which pages to make ready.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import select
import signal
import time
from collections.abc import Callable, Sequence

from glowplug.core.errors import StandbyError
from glowplug.standby import wire
from glowplug.standby.child.become import Child, make_room
from glowplug.standby.connection import is_stopped

from . import footprint, preload

_QUIET_S = 0.1  # after a request: a program that starts has the processor first
_AFTER_FAILURE_S = 10.0
_TRIAL_S = 30
_NO_DEVICES = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
_NEVER = float("inf")


class Spare:
    """At most one spare. `exercise` is what programs do first; with `rehearses`, each spare does it beforehand."""

    def __init__(self, exercise: Callable[[], None], *, rehearses: bool) -> None:
        self._exercise = exercise
        self.rehearses = rehearses
        self._pid: int | None = None
        self._ready = False
        self._connection: wire.Socket | None = None
        self.trial: int | None = None  # a descriptor: readable when the trial has something to say
        self._told = b""
        self._footprint: tuple[footprint.Ranges, footprint.Ranges] = ([], [])
        self.due = _NEVER  # when to fork the next spare, of the monotonic clock

    @property
    def pid(self) -> int | None:
        """The spare, once it is ready."""
        return self._pid if self._pid is not None and self._is_ready() else None

    def begin(self, forget: Callable[[], None]) -> int | None:
        """Fork the trial, if there is to be one, and return its descriptor.

        `forget` closes, in a child, what belongs to the standby.
        """
        if self.rehearses:
            self.due = time.monotonic()
            return None
        self.trial, writable = os.pipe2(os.O_CLOEXEC)
        if os.fork():
            os.close(writable)
            return self.trial
        try:
            forget()
            _try_out(self._exercise, writable)
        finally:
            os._exit(0)  # what went wrong makes no difference to anybody but the next program's speed

    def hear_trial(self) -> bool:
        """Read what the trial says, and tell whether that was all. One that failed says nothing."""
        assert self.trial is not None
        part = os.read(self.trial, 1 << 16)
        self._told += part
        if part:
            return False
        os.close(self.trial)
        self.trial = None
        if self._told:
            self._footprint = marshal.loads(self._told)
        self.due = time.monotonic()
        return True

    def fork(self, forget: Callable[[], None]) -> Child | None:
        """Fork the next spare. Returns None in the standby; in the spare, the request, once there is one."""
        self.due = _NEVER
        ours, theirs = wire.socket_pair()
        try:
            preload.assert_one_thread()
            pid = os.fork()
        except (OSError, StandbyError):
            self.due = time.monotonic() + _AFTER_FAILURE_S
            ours.close()
            theirs.close()
            return None
        if pid == 0:
            ours.close()
            forget()
            return _wait(theirs, self._get_ready)
        theirs.close()
        self._pid, self._connection = pid, ours
        return None

    def _get_ready(self) -> None:
        """Do what can be done before the request. Runs in the spare."""
        if self.rehearses:
            signal.alarm(_TRIAL_S)
            self._exercise()
            signal.alarm(0)
        else:
            footprint.prepare(*self._footprint)

    def _is_ready(self) -> bool:
        if not self._ready and self._connection is not None:
            poll = select.poll()
            poll.register(self._connection.fileno(), select.POLLIN)
            with contextlib.suppress(OSError):  # it was killed at this moment
                self._ready = bool(poll.poll(0)) and wire.receive(self._connection)[0] is not None
        return self._ready

    def take(self, client: wire.Socket, body: int, descriptors: Sequence[int]) -> int | None:
        """Hand the request to the spare and return its process id; None where there is no spare to take it."""
        if self._pid is not None and not self._is_ready():
            return None
        if self._pid is not None and is_stopped(self._pid):
            self.end()  # nobody would ever hear of it again
        if self.trial is None:
            self.due = time.monotonic() + _QUIET_S
        if self._pid is None or self._connection is None:
            return None
        try:
            wire.send(self._connection, {"do": "run"}, [client.fileno(), body, *descriptors], wait=False)
        except OSError:
            self.end()
            return None
        pid = self._pid
        self.forget()
        return pid

    def lose(self, pid: int) -> None:
        """Take note that a child has ended; it may have been the spare."""
        if pid == self._pid:
            failed = self.rehearses and not self._is_ready()
            self.rehearses = self.rehearses and not failed  # the next one does without
            self.forget()
            self.due = time.monotonic() + (0 if failed else _AFTER_FAILURE_S)

    def end(self) -> None:
        """End the spare; it has nothing to lose."""
        if self._pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._pid, 0)
        self.forget()

    def forget(self) -> None:
        """Let go of the spare, which ends itself unless it has a request."""
        if self._connection is not None:
            self._connection.close()
        self._pid = self._connection = None
        self._ready = False

    def forget_all(self) -> None:
        """Close what belongs to the standby. Runs in the child."""
        self.forget()
        if self.trial is not None:
            os.close(self.trial)
            self.trial = None


def _wait(connection: wire.Socket, get_ready: Callable[[], None]) -> Child:
    """Be the spare: get ready, say so, and return once there is a request."""
    _plain_signals()
    try:
        make_room()
        get_ready()
        wire.send(connection, {"ready": True})
    except BaseException:  # a standby that has gone, or a rehearsal that failed: nobody shall have this child
        os._exit(1)
    message, descriptors = wire.receive(connection)
    connection.close()
    if message is None:
        os._exit(0)
    client, body, *rest = descriptors
    request = wire.read_memory_file(body)
    os.close(body)
    return Child(wire.Socket(fileno=client), request, rest)


def _try_out(exercise: Callable[[], None], writable: int) -> None:
    """Be the trial: do what a program would do first, and tell which pages that took."""
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


def _plain_signals() -> None:
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
