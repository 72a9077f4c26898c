"""The first process of a server: forks the front end and the workers, watches them, and does nothing else.

It has one thread, TensorFlow's library loaded and no graph, so a worker it forks starts in milliseconds. It dies last:
every child is bound to die with it.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import select
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from glowplug.core.errors import RuntimeFailure
from glowplug.serve.workers.spec import WorkerSpec

from . import control, priority

FrontEnd = Callable[[socket.socket], int]

_PR_SET_PDEATHSIG = 1
_MAX_CRASHES, _CRASH_WINDOW_S = 5, 60.0
_KILL_AFTER_S = 5.0
_NOT_STARTED = 71  # EX_OSERR


@dataclass(frozen=True, slots=True)
class Child:
    """A process we started: `number` is the front end's name for it."""

    number: int
    kind: str


class Supervisor:
    """Runs until told to stop by a signal, or until the front end keeps crashing."""

    def __init__(self, front_end: FrontEnd, *, drain_seconds: float) -> None:
        self._front_end = front_end
        self._drain_seconds = drain_seconds
        self._children: dict[int, Child] = {}
        self._front_pid = 0
        self._channel: socket.socket | None = None
        self._crashes: list[float] = []
        self._stop_at: float | None = None

    def run(self) -> int:
        """Serve until stopped; returns the exit code."""
        readable, writable = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        previous = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGTERM, signal.SIGINT)}
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # under `nohup` it means nothing
            previous[signal.SIGHUP] = signal.signal(signal.SIGHUP, lambda *_: None)
        previous[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
        try:
            self._start_front_end()
            _open_library()  # while the front end imports what it needs
            return self._loop(readable)
        finally:
            signal.set_wakeup_fd(-1)
            for number, handler in previous.items():
                signal.signal(number, handler)
            self._end_everyone()
            os.close(readable)
            os.close(writable)

    def _loop(self, signals: int) -> int:
        while True:
            timeout = None if self._stop_at is None else max(0.0, self._stop_at - time.monotonic())
            watched: list[int | socket.socket] = [signals, *([self._channel] if self._channel else [])]
            ready, _, _ = select.select(watched, [], [], timeout)
            if self._stop_at is not None and time.monotonic() >= self._stop_at:
                return 0
            if signals in ready:
                for number in os.read(signals, 4096):
                    if number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                        self._drain()
            if self._channel in ready:
                self._handle_message()
            code = self._reap()
            if code is not None:
                return code

    def _drain(self) -> None:
        """Ask the front end to finish; a second signal ends everything at once."""
        now = time.monotonic()
        if self._stop_at is not None or self._channel is None:
            self._stop_at = now
            return
        self._stop_at = now + self._drain_seconds
        self._tell({"event": "drain"})

    def _tell(self, document: dict[str, Any]) -> None:
        if self._channel is not None:
            try:
                control.send(self._channel, document)
            except OSError:  # the front end is gone, which `_reap` finds out in its own way
                self._forget_channel()

    def _forget_channel(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def _handle_message(self) -> None:
        assert self._channel is not None
        try:
            document, descriptor = control.receive(self._channel)
        except OSError:
            document, descriptor = None, None
        if document is None:
            self._forget_channel()
            return
        try:
            if document["op"] == "spawn" and descriptor is not None:
                self._spawn_worker(document, descriptor)
            elif document["op"] == "kill" and document["pid"] in self._children:
                os.kill(document["pid"], signal.SIGKILL)
            elif document["op"] == "run":
                self._run_command(document)
        except OSError as error:  # no process, no memory or no room on the disk: whoever asked waits and tries again
            _say(f"a process could not be started: {error}")
            self._tell({"event": "exited", "number": document["number"], "pid": 0, "code": _NOT_STARTED})
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def _spawn_worker(self, document: dict[str, Any], descriptor: int) -> None:
        from glowplug.serve.workers import worker

        _check_one_thread()
        _flush()
        pid = os.fork()
        if not pid:
            _become_child(signal.SIGKILL)
            self._forget_channel()
            channel = socket.socket(fileno=descriptor)
            worker.run_and_exit(channel, WorkerSpec.from_json(document["spec"]))
        self._children[pid] = Child(document["number"], "worker")
        self._tell({"event": "started", "number": document["number"], "pid": pid})

    def _run_command(self, document: dict[str, Any]) -> None:
        with Path(document["log"]).open("wb") as log:
            process = subprocess.Popen(
                document["argv"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                preexec_fn=_become_quiet_command,  # noqa: PLW1509 - this process has one thread
            )
        self._children[process.pid] = Child(document["number"], "command")
        process.returncode = 0  # `_reap` collects it, not `subprocess`
        self._tell({"event": "started", "number": document["number"], "pid": process.pid})

    def _start_front_end(self) -> None:
        _check_one_thread()
        ours, theirs = control.make_pair()
        _flush()
        pid = os.fork()
        if not pid:
            code = 70
            try:
                _become_child(signal.SIGTERM)
                ours.close()
                code = self._front_end(theirs)
            except BaseException:
                traceback.print_exc()
            finally:
                _flush()
                os._exit(code)
        theirs.close()
        self._channel, self._front_pid = ours, pid

    def _reap(self) -> int | None:
        """Collect the dead. Returns an exit code when the server is over."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return None
            if not pid:
                return None
            code = os.waitstatus_to_exitcode(status)
            if pid == self._front_pid:
                over = self._front_end_ended(code)
                if over is not None:
                    return over
            elif (child := self._children.pop(pid, None)) is not None:
                self._tell({"event": "exited", "number": child.number, "pid": pid, "code": code})

    def _front_end_ended(self, code: int) -> int | None:
        self._forget_channel()
        self._end_everyone()
        if self._stop_at is not None:
            return 0
        if code in (0, 2, 3, 4):  # it ended on purpose: stopped, or told why it cannot start
            return code
        now = time.monotonic()
        self._crashes = [then for then in self._crashes if now - then < _CRASH_WINDOW_S] + [now]
        if len(self._crashes) >= _MAX_CRASHES:
            _say("the front end keeps crashing; giving up")
            return 5
        _say(f"the front end ended with {code}; starting it again")
        self._start_front_end()
        return None

    def _end_everyone(self) -> None:
        """End all children and wait for them."""
        for pid in list(self._children):
            _signal(pid, signal.SIGKILL)
        if self._channel is not None:  # the front end is still there
            _signal(self._front_pid, signal.SIGTERM)
            deadline = time.monotonic() + _KILL_AFTER_S
            while time.monotonic() < deadline:
                if _is_gone(self._front_pid):
                    break
                time.sleep(0.01)  # only on the way out, and `waitpid` has no timeout of its own
            else:
                _signal(self._front_pid, signal.SIGKILL)
                _is_gone(self._front_pid, wait=True)
            self._forget_channel()
        for pid in list(self._children):
            _is_gone(pid, wait=True)
            del self._children[pid]


def _open_library() -> None:
    """Load what every worker needs, so that they share it and start at once."""
    import numpy  # noqa: F401
    import orjson  # noqa: F401

    from glowplug.bundle import warmup  # noqa: F401
    from glowplug.loader import open  # noqa: F401
    from glowplug.loader.engines import litert_interfaces, native, savedmodel, tflite_file  # noqa: F401
    from glowplug.runtime import fingerprint, graph, library, registration, session, tensor  # noqa: F401
    from glowplug.serve.wire.messages import message
    from glowplug.serve.workers import plain_model, worker  # noqa: F401

    message("tensorflow.Example")
    only_litert = litert_interfaces.preload() and not library.is_installed()  # which serves what it can
    if not only_litert:
        library.open_library()
        registration.register(str(library.find_directory()))
        if "TF_CPP_MIN_LOG_LEVEL" not in os.environ:  # TensorFlow warns of every bad request, which its sender is told
            library.set_log_level(library.ERROR)
    gc.collect()
    gc.freeze()  # so that a child's collector does not touch, and thereby copy, what it shares with us


def _check_one_thread() -> None:
    try:
        threads = len(os.listdir("/proc/self/task"))  # noqa: PTH208
    except OSError:
        return
    if threads != 1:
        raise RuntimeFailure("the supervisor must have one thread to fork safely", seen=f"{threads} threads")


def _become_child(parent_died: int) -> None:
    """Run in the child. It ends with the supervisor, and signals mean to it what they mean to any process."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, parent_died, 0, 0, 0)
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # a terminal sends it to everyone; the supervisor decides


def _become_quiet_command() -> None:
    _become_child(signal.SIGKILL)
    priority.step_aside()


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _is_gone(pid: int, *, wait: bool = False) -> bool:
    try:
        return os.waitpid(pid, 0 if wait else os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True


def _say(text: str) -> None:
    with contextlib.suppress(OSError):
        print(f"glowplug serve: {text}", file=sys.stderr, flush=True)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):  # nobody reads any more, or the disk is full
            stream.flush()
