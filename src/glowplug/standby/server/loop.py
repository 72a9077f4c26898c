"""The standby's own loop: one process, one thread, which forks a child for each request. Runs in the standby.

It never runs a program's code itself and never waits for one client while another asks: everything it does between two
polls is short. A child that crashes is reaped and reported; a client that goes away takes its run with it.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable, Sequence
from typing import Any

from glowplug.core.errors import GlowplugError, StandbyError
from glowplug.standby import identity, key, wire
from glowplug.standby.child.become import Child
from glowplug.standby.connection import is_stopped

from . import preload
from .exercise import exercise, leaves_no_trace
from .freshness import Freshness
from .spare import Spare

_WAIT_FOR_REQUEST_S = 10.0
_MOST_WAITING = 64  # callers ask as soon as they are connected: of those that do not, the oldest goes
_LOOK_AT_CLIENTS_S = 0.25
_GONE = select.POLLHUP | select.POLLERR | getattr(select, "POLLRDHUP", 0)


class _Run:
    """One child and the client that waits for it."""

    def __init__(self, connection: wire.Socket, label: str, client: int = 0) -> None:
        self.connection = connection
        self.label = label
        self.client = client
        self.began = time.monotonic()
        self.stopped = False
        self.held = False  # stopped by us, since its client is


class Server:
    """Accepts, forks, reaps."""

    def __init__(
        self,
        listener: wire.Socket,
        components: dict[str, str],
        idle_s: float,
        fresh: Freshness,
        retire: Callable[[], None],
        replace: Callable[[], None],
        belongings: Sequence[int] = (),
        modules: int = 0,
    ) -> None:
        self._listener: wire.Socket | None = listener
        self._belongings = belongings  # descriptors that a child has no use for
        self._components = components
        self._idle_s = idle_s
        self._fresh = fresh
        self._retire = retire  # called once, when no more requests are taken
        self._replace = replace  # called after that, if the files have changed
        self._waiting: dict[int, tuple[wire.Socket, float]] = {}
        self._runs: dict[int, _Run] = {}
        self._served = 0
        self._modules = modules
        self._since = time.time()
        self._last = self._looked = time.monotonic()
        self._stale: str | None = None
        names = tuple(filter(None, components["preload"].split(",")))
        kind = components["kind"]
        self._spare = Spare(lambda: exercise(kind, names), rehearses=leaves_no_trace(kind))
        self._poll = select.poll()
        self._wake, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._signals = wake
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: None)
        self._poll.register(self._wake, select.POLLIN)
        self._poll.register(listener.fileno(), select.POLLIN)

    def serve(self) -> Child | None:
        """Serve until idle, stale or told to stop. Returns None in the standby, and the request in a child."""
        trial = self._spare.begin(self._forget)
        if trial is not None:
            self._poll.register(trial, select.POLLIN)
        while True:
            for descriptor, events in self._poll.poll(self._timeout_ms()):
                forked = self._handle(descriptor, events)
                if forked is not None:
                    return forked
            self._drop_silent()
            self._follow_clients()
            if self._listener is not None and time.monotonic() >= self._spare.due:
                forked = self._spare.fork(self._forget)
                if forked is not None:
                    return forked
            if self._listener is not None and not self._runs and not self._waiting and self._idle():
                self.close_listener()
            if self._listener is None and not self._runs and not self._waiting:
                return None

    def close_listener(self) -> None:
        """Take no more requests. Runs go on."""
        if self._listener is not None:
            self._poll.unregister(self._listener.fileno())
            self._listener.close()
            self._listener = None
            self._retire()
        self._spare.end()

    def _handle(self, descriptor: int, events: int) -> Child | None:
        if descriptor == self._wake:
            self._on_signals()
        elif self._listener is not None and descriptor == self._listener.fileno():
            self._accept()
        elif descriptor == self._spare.trial:
            if self._spare.hear_trial():
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
        except OSError:
            return  # it has gone again, or there are no descriptors left until somebody else goes
        connection = wire.Socket(fileno=descriptor)
        os.set_inheritable(descriptor, False)
        try:
            wire.peer(connection)
        except StandbyError:
            connection.close()
            return
        if len(self._waiting) >= _MOST_WAITING:
            self._drop(next(iter(self._waiting)))
        self._waiting[descriptor] = (connection, time.monotonic())
        self._poll.register(descriptor, select.POLLIN)

    def _request(self, connection: wire.Socket) -> Child | None:
        descriptors: list[int] = []
        try:
            message, descriptors = wire.receive(connection)
            if message is None:
                connection.close()
                return None
            operation = message.get("do")
            if operation == "run":
                return self._run(connection, descriptors)
            wire.send(connection, self._status() if operation == "status" else self._stop(operation), wait=False)
        except (GlowplugError, OSError, ValueError, KeyError, TypeError, EOFError) as error:
            with contextlib.suppress(OSError):
                wire.send(connection, {"refused": str(error), "gone": self._stale is not None}, wait=False)
        finally:
            if connection.fileno() >= 0 and not self._is_running(connection):
                connection.close()
                for number in descriptors:
                    with contextlib.suppress(OSError):
                        os.close(number)
        return None

    def _run(self, connection: wire.Socket, descriptors: list[int]) -> Child | None:
        body, *rest = descriptors
        request = wire.read_memory_file(body)
        different = key.difference(self._components, request["key"])
        if different:
            raise StandbyError("the standby was built from something else", seen=different)
        first, self._stale = self._stale is None, self._fresh.problem()
        if self._stale:
            self.close_listener()
            if first:
                with contextlib.suppress(OSError, StandbyError):
                    self._replace()
            raise StandbyError("the standby reloads", seen=self._stale)
        pid = self._spare.take(connection, body, rest) if self._suits(request) else None
        if pid is None:
            preload.assert_one_thread()
            pid = os.fork()
        if pid == 0:
            self._forget(connection)
            os.close(body)
            return Child(connection, request, rest)
        for number in descriptors:
            os.close(number)
        descriptors.clear()
        self._runs[pid] = _Run(connection, request["call"], wire.peer(connection))
        self._poll.register(connection.fileno(), _GONE)
        self._served += 1
        self._last = time.monotonic()
        return None

    def _suits(self, request: dict[str, Any]) -> bool:
        """Tell whether a child that has rehearsed is what the caller wants: its threads exist already."""
        return not self._spare.rehearses or (request["rehearsed"] and identity.has_same_processors(request))

    def _is_running(self, connection: wire.Socket) -> bool:
        return any(run.connection is connection for run in self._runs.values())

    def _forget(self, own: wire.Socket | None = None) -> None:
        """Close what belongs to the standby. Runs in the child."""
        signal.set_wakeup_fd(-1)
        for number in self._belongings:
            os.close(number)
        self._spare.forget_all()
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
                pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self._on_child(pid, status)

    def _on_child(self, pid: int, status: int) -> None:
        if os.WIFSTOPPED(status) or os.WIFCONTINUED(status):
            changed = self._runs.get(pid)
            if changed is not None:
                changed.stopped = os.WIFSTOPPED(status)
                if changed.stopped and not changed.held:
                    self._tell(changed, {"stopped": os.WSTOPSIG(status)})
            return
        self._spare.lose(pid)
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
                wire.send(run.connection, message, wait=False)

    def _follow_clients(self) -> None:
        """Stop each run whose client is stopped, and let it go on with it: SIGSTOP cannot be passed on."""
        if time.monotonic() < self._looked + _LOOK_AT_CLIENTS_S:
            return
        self._looked = time.monotonic()
        for pid, run in self._runs.items():
            if is_stopped(run.client) and not run.stopped:
                run.held = True
                os.kill(pid, signal.SIGSTOP)  # it is not reaped yet, so this is still the process
            elif run.held and not is_stopped(run.client):
                run.held = False
                if run.stopped:
                    os.kill(pid, signal.SIGCONT)

    def _status(self) -> dict[str, Any]:
        now = time.monotonic()
        runs = [[pid, run.label, now - run.began] for pid, run in self._runs.items()]
        return {
            "pid": os.getpid(),
            "served": self._served,
            "runs": runs,
            "threads": preload.thread_count(),
            "idle_s": now - self._last,
            "idle_limit_s": self._idle_s,
            "since": self._since,
            "modules": self._modules,
            "spare": self._spare.pid,
        }

    def _stop(self, operation: Any) -> dict[str, Any]:
        if operation != "stop":
            raise StandbyError("no such request", seen=operation)
        self.close_listener()
        return {"pid": os.getpid(), "runs": len(self._runs)}

    def _drop_silent(self) -> None:
        late = time.monotonic() - _WAIT_FOR_REQUEST_S
        for descriptor, (_, since) in list(self._waiting.items()):
            if since < late:
                self._drop(descriptor)

    def _drop(self, descriptor: int) -> None:
        connection, _ = self._waiting.pop(descriptor)
        self._poll.unregister(descriptor)
        connection.close()

    def _timeout_ms(self) -> int | None:
        now = time.monotonic()
        due = now + _WAIT_FOR_REQUEST_S if self._waiting else float("inf")
        if self._runs:
            due = min(due, self._looked + _LOOK_AT_CLIENTS_S)
        if self._listener is not None:
            due = min(due, self._spare.due)
            if not self._runs:
                due = min(due, self._last + self._idle_s)
        return max(0, int((due - now) * 1000)) + 1 if due < float("inf") else None

    def _idle(self) -> bool:
        return time.monotonic() - self._last >= self._idle_s
