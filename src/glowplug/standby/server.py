"""The standby's own loop: one process, one thread, which forks a child for each request. Runs in the standby.

It never runs a program's code itself and never waits for one client while another asks: everything it does between two
polls is short. A child that crashes is reaped and reported; a client that goes away takes its run with it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from glowplug.core.errors import GlowplugError, StandbyError

from . import child as children
from . import identity, key, paths, preload, wire
from .exercise import exercise, leaves_no_trace
from .freshness import Freshness
from .spare import Reserve

_WAIT_FOR_REQUEST_S = 10.0
_BACKLOG = 128
_GONE = select.POLLHUP | select.POLLERR | getattr(select, "POLLRDHUP", 0)


class _Run:
    """One child and the client that waits for it."""

    def __init__(self, connection: wire.Socket, label: str) -> None:
        self.connection = connection
        self.label = label
        self.began = time.monotonic()


class Server:
    """Accepts, forks, reaps."""

    def __init__(
        self,
        listener: wire.Socket,
        components: dict[str, str],
        idle_s: float,
        fresh: Freshness,
        replace: Callable[[], None],
        belongings: Sequence[int] = (),
    ) -> None:
        self._listener: wire.Socket | None = listener
        self._belongings = belongings  # descriptors that a child has no use for
        self._components = components
        self._idle_s = idle_s
        self._fresh = fresh
        self._replace = replace
        self._waiting: dict[int, tuple[wire.Socket, float]] = {}
        self._runs: dict[int, _Run] = {}
        self._served = 0
        self._last = time.monotonic()
        self._stale: str | None = None
        names = tuple(filter(None, components["preload"].split(",")))
        kind = components["kind"]
        self._reserve = Reserve(lambda: exercise(kind, names), rehearses=leaves_no_trace(kind))
        self._poll = select.poll()
        self._wake, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._signals = wake
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: None)
        self._poll.register(self._wake, select.POLLIN)
        self._poll.register(listener.fileno(), select.POLLIN)

    @property
    def stale(self) -> str | None:
        """Say why this standby must be replaced, if it must."""
        return self._stale

    def serve(self) -> children.Child | None:
        """Serve until idle, stale or told to stop. Returns None in the standby, and the request in a child."""
        trial = self._reserve.begin(self._forget)
        if trial is not None:
            self._poll.register(trial, select.POLLIN)
        while True:
            for descriptor, events in self._poll.poll(self._timeout_ms()):
                forked = self._handle(descriptor, events)
                if forked is not None:
                    return forked
            self._drop_silent()
            if self._listener is not None and time.monotonic() >= self._reserve.due:
                forked = self._reserve.fork(self._forget)
                if forked is not None:
                    return forked
            if self._listener is not None and not self._runs and not self._waiting and self._idle():
                self.close_listener()
            if self._listener is None and not self._runs:
                return None

    def close_listener(self) -> None:
        """Take no more requests. Runs go on."""
        if self._listener is not None:
            self._poll.unregister(self._listener.fileno())
            self._listener.close()
            self._listener = None
        self._reserve.end()

    def _handle(self, descriptor: int, events: int) -> children.Child | None:
        if descriptor == self._wake:
            self._on_signals()
        elif self._listener is not None and descriptor == self._listener.fileno():
            self._accept()
        elif descriptor == self._reserve.trial:
            if self._reserve.hear_trial():
                self._poll.unregister(descriptor)
        elif descriptor in self._waiting:
            connection, _ = self._waiting.pop(descriptor)
            self._poll.unregister(descriptor)
            return self._request(connection)
        elif events & _GONE:
            self._poll.unregister(descriptor)
            for pid, run in self._runs.items():
                if run.connection.fileno() == descriptor:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)  # whoever ended the client meant the program
        return None

    def _accept(self) -> None:
        assert self._listener is not None
        try:
            descriptor, _ = self._listener._accept()  # type: ignore[attr-defined]
        except (BlockingIOError, ConnectionAbortedError):
            return
        connection = wire.Socket(fileno=descriptor)
        os.set_inheritable(descriptor, False)
        try:
            wire.check_peer(connection)
        except StandbyError:
            connection.close()
            return
        self._waiting[descriptor] = (connection, time.monotonic())
        self._poll.register(descriptor, select.POLLIN)

    def _request(self, connection: wire.Socket) -> children.Child | None:
        descriptors: list[int] = []
        try:
            message, descriptors = wire.receive(connection)
            if message is None:
                connection.close()
                return None
            operation = message.get("do")
            if operation == "run":
                return self._run(connection, descriptors)
            wire.send(connection, self._status() if operation == "status" else self._stop(operation))
        except (GlowplugError, OSError, ValueError, KeyError, TypeError, EOFError) as error:
            with contextlib.suppress(OSError):
                wire.send(connection, {"refused": f"{type(error).__name__}: {error}"})
        finally:
            if connection.fileno() >= 0 and not self._is_running(connection):
                connection.close()
                for number in descriptors:
                    with contextlib.suppress(OSError):
                        os.close(number)
        return None

    def _run(self, connection: wire.Socket, descriptors: list[int]) -> children.Child | None:
        body, *rest = descriptors
        request = wire.read_memory_file(body)
        different = key.difference(self._components, request["key"])
        if different:
            raise StandbyError("the standby was built from something else", seen=different)
        self._stale = self._fresh.problem()
        if self._stale:
            self.close_listener()
            self._replace()
            raise StandbyError("the standby reloads", seen=self._stale)
        pid = self._reserve.take(connection, body, rest) if self._suits(request) else None
        if pid is None:
            preload.assert_one_thread()
            pid = os.fork()
        if pid == 0:
            self._forget(connection)
            os.close(body)
            return children.Child(connection, request, rest)
        for number in descriptors:
            os.close(number)
        descriptors.clear()
        self._runs[pid] = _Run(connection, request["call"])
        self._poll.register(connection.fileno(), _GONE)
        self._served += 1
        self._last = time.monotonic()
        return None

    def _suits(self, request: dict[str, Any]) -> bool:
        """Tell whether a child that has rehearsed is what the caller wants: its threads exist already."""
        return not self._reserve.rehearses or (request["rehearsed"] and identity.has_same_processors(request))

    def _is_running(self, connection: wire.Socket) -> bool:
        return any(run.connection is connection for run in self._runs.values())

    def _forget(self, own: wire.Socket | None = None) -> None:
        """Close what belongs to the standby. Runs in the child."""
        signal.set_wakeup_fd(-1)
        for number in self._belongings:
            os.close(number)
        self._reserve.forget_all()
        os.close(self._wake)
        os.close(self._signals)
        self._fresh.close()
        if self._listener is not None:
            self._listener.close()
        for connection, _ in self._waiting.values():
            connection.close()
        for run in self._runs.values():
            run.connection.close()
        # So that its own connection is not closed on the way out.
        self._runs = {} if own is None else {-1: _Run(own, "")}

    def _on_signals(self) -> None:
        numbers = os.read(self._wake, 4096)
        if any(number in numbers for number in (signal.SIGTERM, signal.SIGINT)):
            self.close_listener()
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self._on_child(pid, status)

    def _on_child(self, pid: int, status: int) -> None:
        if os.WIFSTOPPED(status):
            self._tell(self._runs.get(pid), {"stopped": os.WSTOPSIG(status)})
            return
        self._reserve.lose(pid)
        run = self._runs.pop(pid, None)
        self._tell(run, {"ended": os.waitstatus_to_exitcode(status)})
        if run is not None:
            with contextlib.suppress(KeyError):
                self._poll.unregister(run.connection.fileno())
            run.connection.close()
        self._last = time.monotonic()

    def _tell(self, run: _Run | None, message: dict[str, Any]) -> None:
        if run is not None:
            with contextlib.suppress(OSError):
                wire.send(run.connection, message)

    def _status(self) -> dict[str, Any]:
        now = time.monotonic()
        runs = [[pid, run.label, now - run.began] for pid, run in self._runs.items()]
        return {
            "pid": os.getpid(),
            "key": self._components,
            "served": self._served,
            "runs": runs,
            "threads": preload.thread_count(),
            "idle_s": now - self._last,
            "idle_limit_s": self._idle_s,
            "spare": self._reserve.pid,
        }

    def _stop(self, operation: Any) -> dict[str, Any]:
        if operation != "stop":
            raise StandbyError("no such request", seen=operation)
        self.close_listener()
        return {"pid": os.getpid(), "runs": len(self._runs)}

    def _drop_silent(self) -> None:
        late = time.monotonic() - _WAIT_FOR_REQUEST_S
        for descriptor, (connection, since) in list(self._waiting.items()):
            if since < late:
                del self._waiting[descriptor]
                self._poll.unregister(descriptor)
                connection.close()

    def _timeout_ms(self) -> int | None:
        now = time.monotonic()
        due = now + _WAIT_FOR_REQUEST_S if self._waiting else float("inf")
        if self._listener is not None:
            due = min(due, self._reserve.due)
            if not self._runs:
                due = min(due, self._last + self._idle_s)
        return max(0, int((due - now) * 1000)) + 1 if due < float("inf") else None

    def _idle(self) -> bool:
        return time.monotonic() - self._last >= self._idle_s


def main(settings: dict[str, Any]) -> int:
    """Be a standby. In a child this returns as the program's end."""
    kind, names = settings["kind"], tuple(settings["preload"])
    if not getattr(sys.flags, "safe_path", False) and not sys.flags.isolated:
        sys.path.insert(0, "")  # where `key.search_path` and a program expect the program's own entry
    components = key.components(kind, names)
    name = key.digest(components)
    directory = paths.open_directory(create=True)
    lock = os.open(f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600, dir_fd=directory)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return _report(settings, "there is one already")
    if components != settings["key"]:
        return _report(settings, f"it would differ in {key.difference(components, settings['key'])}")
    try:
        garage = preload.import_all(kind, names, settings["companion"])
        modules = [module for module in sys.modules.values() if module is not None]
        modules += garage.modules() if garage is not None else []
        fresh = Freshness(modules)
        listener = _listen(directory, name)
        sys.stdout.flush()  # or each child writes it again
        sys.stderr.flush()
        preload.freeze()
    except Exception as error:  # the process boundary: whoever started this reads it
        return _report(settings, f"{type(error).__name__}: {error}")

    def replace() -> None:
        from .launch import launch

        fcntl.flock(lock, fcntl.LOCK_UN)  # the next one may begin while runs of this one go on
        launch(kind, names, settings["companion"], idle_s=settings["idle_s"], wait=False)

    server = Server(listener, components, float(settings["idle_s"]), fresh, replace, belongings=(lock, directory))
    _report(settings, "")
    forked = server.serve()
    if forked is None:
        return _end(server, directory, name)
    children.leave(children.run(forked, garage))


def _listen(directory: int, name: str) -> wire.Socket:
    listener = wire.new_socket()
    listener.setblocking(False)
    path = f"{name}.sock"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path, dir_fd=directory)  # what a killed standby left; the lock says that it is gone
    before = os.umask(0o177)
    try:
        listener.bind(paths.through(directory, path))
    finally:
        os.umask(before)
    listener.listen(_BACKLOG)
    return listener


def _report(settings: dict[str, Any], problem: str) -> int:
    """Tell whoever started this standby how it went; an empty text means that it is ready."""
    descriptor = settings["ready"]
    with contextlib.suppress(BrokenPipeError):
        os.write(descriptor, problem.encode()[:2000] or b"\n")
    os.close(descriptor)
    if settings["turn"] is not None:
        os.close(settings["turn"])
    return 1 if problem else 0


def _end(server: Server, directory: int, name: str) -> int:
    if not server.stale:  # else the socket is the next one's
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{name}.sock", dir_fd=directory)
    os._exit(0)  # nothing to clean up, and taking thousands of modules apart would take half a second
