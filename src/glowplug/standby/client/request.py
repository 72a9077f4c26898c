"""Asks a standby for a child and says when it may begin. Runs in the client.

Nobody runs a program twice. A child that has become like its caller says that it is ready and waits; the client tells
it to begin, once, and from then on the run is the child's. A client that gives up before that closes the connection,
and the child ends without having begun. Every wait has an end.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from glowplug.core.errors import StandbyError
from glowplug.standby import confinement, identity, key, paths, wire
from glowplug.standby.connection import connect, is_dead, is_stopped

ANSWER_S = 10.0  # a standby answers within milliseconds, unless the machine has no processor left
_END_S = 2.0  # between the end of a process and the standby's word for it
_MOST_STARTS = 2


class Declined:
    """Why no standby runs the program. `unusual`: its user should hear of it. `gone`: another one may be started."""

    __slots__ = ("gone", "reason", "unusual")

    def __init__(self, reason: str, *, unusual: bool = False, gone: bool = False) -> None:
        self.reason = reason
        self.unusual = unusual
        self.gone = gone


class _BegunAlreadyError(StandbyError):
    """The program has begun, so that a plain start would be a second one."""


class Begun:
    """A run that has started: its process, and the connection on which its end is told."""

    def __init__(self, connection: wire.Socket, pid: int, process: int) -> None:
        self.connection = connection
        self.pid = pid
        self.process = process  # a pidfd: readable once the process has ended, and safe to signal
        self._leaving: int | None = None

    def signal(self, number: int) -> None:
        """Send a signal to the process alone; harmless if it has ended."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.process, number)

    def signal_group(self, number: int) -> None:
        """Send a signal to the process and those it started in its group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def message(self) -> dict[str, Any] | None:
        """Read what the standby or the child says; None when neither will say more."""
        try:
            message, descriptors = wire.receive(self.connection)
        except ConnectionResetError:
            return None
        for descriptor in descriptors:
            os.close(descriptor)
        if message is not None and "leaving" in message:
            self._leaving = message["leaving"]
        return message

    def end(self) -> int:
        """Return how the process ended, once it has: the standby's word for it, or the process's own.

        A standby that was killed, or stopped, tells nothing; then nobody knows how a process was killed, if it was.
        """
        poll = select.poll()
        poll.register(self.process, select.POLLIN)
        poll.poll()
        until = time.monotonic() + _END_S
        with contextlib.suppress(OSError):
            while wire.is_readable(self.connection.fileno(), until) and (message := self.message()) is not None:
                if "ended" in message:
                    return int(message["ended"])
        if self._leaving is not None:
            return self._leaving
        raise StandbyError(
            "the standby was killed or stopped during the run, and with it the knowledge of how the run ended",
            seen=f"process {self.pid}",
            remedy="check the program's own output; the next run starts another standby",
        )

    def close(self) -> None:
        """Let go. A run that goes on without an owner is ended by its standby."""
        self.connection.close()
        if self.process >= 0:
            os.close(self.process)
            self.process = -1


def begin(
    call: str,
    arguments: Sequence[Any],
    *,
    start: bool,
    kind: str,
    preload: tuple[str, ...],
    descriptors: Mapping[int, int],
    companion: str = "",
    program: tuple[str, str] | None = None,
    rehearsed: bool = False,
    before_begin: Callable[[], None] | None = None,
    tell: Callable[[str], None] | None = None,
) -> Begun | Declined:
    """Ask a standby for a child that calls `call`; return it, or the reason why there is none.

    With `start`, one is started and waited for where none runs: one that imports `preload` and calls `companion`, a
    `package.module:function`, before it forks. `descriptors` gives what each descriptor of the child is here. With
    `rehearsed`, the child may have done what is usual in its kind of standby. `before_begin` is called at the last
    moment at which nothing can have begun. `tell` hears what a curious user should know besides.
    """
    try:
        identity.require_replaceable(as_program=program is not None)
        components = key.components(kind, preload)
        name = key.digest(components)
        declined = Declined("no standby runs", gone=True)
        for attempt in range(_MOST_STARTS + 1):
            if attempt:
                from glowplug.standby.starting import start as start_standby

                start_standby(kind, preload, companion)
            connection = _connect(name, tell)
            if connection is not None:
                request = _request(call, arguments, components, descriptors, program, rehearsed)
                answer = _ask(connection, request, descriptors, before_begin)
                if isinstance(answer, Begun):
                    return answer
                connection.close()
                declined = answer
            elif attempt:
                declined = Declined("the standby does not stay", gone=True)
            if not start or not declined.gone:
                break
    except _BegunAlreadyError:
        raise
    except StandbyError as error:
        return Declined(str(error))
    if declined.gone and tell is not None and not start:
        from .control import nearest

        other = nearest(components)
        return Declined(f"{declined.reason}{other}")
    return declined


def _connect(name: str, tell: Callable[[str], None] | None) -> wire.Socket | None:
    place = paths.open_place(create=False)
    if place is None:
        return None
    try:
        if place.passed_over and tell is not None:
            tell(place.passed_over)
        connection = connect(place, name)
        if connection is None:
            place.sweep()
        return connection
    finally:
        place.close()


def _request(
    call: str,
    arguments: Sequence[Any],
    components: dict[str, str],
    descriptors: Mapping[int, int],
    program: tuple[str, str] | None,
    rehearsed: bool,
) -> dict[str, Any]:
    inherited = identity.inherited_descriptors() if program is not None else []
    return {
        "call": call,
        "arguments": list(arguments),
        "program": program,
        "rehearsed": rehearsed,
        "key": components,
        "descriptors": [*descriptors, *inherited],
        "terminal": any(here != there for there, here in descriptors.items() if there < 3 and program is not None),
        **identity.describe(),
    }


def _ask(
    connection: wire.Socket,
    request: dict[str, Any],
    descriptors: Mapping[int, int],
    before_begin: Callable[[], None] | None,
) -> Begun | Declined:
    standby = wire.peer(connection)
    if is_dead(standby):  # and a child that it had just forked still has its socket
        return Declined("the standby went away", gone=True)
    if is_stopped(standby):
        return Declined(f"the standby (process {standby}) is stopped", unusual=True)
    try:
        if not confinement.can_see(standby):
            return Declined("the kernel keeps this process and the standby apart")
    except ProcessLookupError:
        return Declined("the standby went away", gone=True)
    inherited = request["descriptors"][len(descriptors) :]
    body = wire.memory_file(request)
    directory = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    until = time.monotonic() + ANSWER_S
    try:
        wire.send(connection, {"do": "run"}, [body, directory, *descriptors.values(), *inherited], wait=False)
        message, received = wire.receive(connection, until=until)
    except (BrokenPipeError, ConnectionResetError):
        return Declined("the standby went away", gone=True)
    except (TimeoutError, BlockingIOError):
        return Declined(f"the standby (process {standby}) did not answer within {ANSWER_S:.0f} s", unusual=True)
    finally:
        os.close(body)
        os.close(directory)
    if message is None or "ready" not in message or not received:
        for descriptor in received:
            os.close(descriptor)
        return _declined(message)
    begun = Begun(connection, message["ready"], received[0])
    if before_begin is not None:
        before_begin()
    return _commit(begun, until)


def _declined(message: dict[str, Any] | None) -> Declined:
    if message is None:
        return Declined("the standby went away", gone=True)
    if "ended" in message:
        return Declined(f"the standby's child ended before the program began (exit code {message['ended']})")
    return Declined(str(message.get("refused", message)), gone=bool(message.get("gone")))


def _commit(begun: Begun, until: float) -> Begun | Declined:
    """Tell the child to begin, and return once it is certain whether it has."""
    answer: dict[str, Any] | None = None
    try:
        wire.send(begun.connection, {"do": "begin"})
        answer, _ = wire.receive(begun.connection, until=until)
    except (BrokenPipeError, ConnectionResetError):
        pass
    except TimeoutError:
        begun.signal(signal.SIGKILL)
        wire.is_readable(begun.process, time.monotonic() + ANSWER_S)  # the end of a killed process takes moments
        with contextlib.suppress(OSError, TimeoutError):
            answer, _ = wire.receive(begun.connection, until=time.monotonic())
        if answer is not None and "started" in answer:
            raise _BegunAlreadyError("the program was begun and did not go on", seen=f"process {begun.pid}") from None
    if answer is not None and "started" in answer:
        return begun
    os.close(begun.process)
    return _declined(answer if answer is None or "ended" in answer else None)
