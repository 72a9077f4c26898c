"""Runs a program in a child of a standby and behaves, towards whoever started it, as if it were that program.

This module is on the path of every `glowplug run`, so it imports next to nothing: what only a terminal or a first start
needs is imported when it is needed.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from glowplug.core.errors import StandbyError

from . import identity, key, paths, wire

_RELAYED = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGTSTP,
    signal.SIGCONT,
    signal.SIGWINCH,
)
_TO_THE_GROUP = (signal.SIGINT, signal.SIGQUIT)  # what a keyboard sends, it sends to all of a job


class Outcome:
    """How a request ended: `code` is an exit code or minus a signal; None: nothing was run, and `note` says why."""

    __slots__ = ("code", "note")

    def __init__(self, code: int | None, note: str = "") -> None:
        self.code = code
        self.note = note


def run(
    call: str,
    arguments: Sequence[Any],
    *,
    start: bool,
    kind: str,
    preload: tuple[str, ...],
    companion: str = "",
    program: tuple[str, str] | None = None,
) -> Outcome:
    """Call `package.module:function` with plain values in a child, in the foreground; otherwise as `begin`."""
    terminal = _terminal()
    descriptors = {number: number for number in identity.open_standard()}
    if terminal is not None:
        descriptors.update(dict.fromkeys(terminal.covered, terminal.inner))
    try:
        with _Signals() as signals:
            try:
                begun = begin(
                    call,
                    arguments,
                    start=start,
                    kind=kind,
                    preload=preload,
                    companion=companion,
                    program=program,
                    descriptors=descriptors,
                    before_request=signals.catch,
                )
            except StandbyError as error:
                return Outcome(None, str(error))
            if isinstance(begun, str):
                return Outcome(None, begun)
            if terminal is None:
                return _wait(begun, signals)
            with terminal:
                return _wait(begun, signals, terminal)
    finally:
        if terminal is not None:
            terminal.close()


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

    def end_without_standby(self) -> Outcome:
        """Wait for the process when the standby is gone: nobody can tell how it was killed, if it was."""
        poll = select.poll()
        poll.register(self.process, select.POLLIN)
        poll.poll()
        if self._leaving is None:
            raise StandbyError(
                "the standby was killed during the run, and with it the knowledge of how the run ended",
                seen=f"process {self.pid}",
                remedy="check the program's own output; the next run starts another standby",
            )
        return Outcome(self._leaving, "the standby was killed during the run")

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
    before_request: Callable[[], None] | None = None,
) -> Begun | str:
    """Ask a standby for a child that calls `call`; return it, or the reason why there is none.

    With `start`, one is started and waited for where none runs: one that imports `preload` and calls `companion`, a
    `package.module:function`, before it forks. `descriptors` gives what each descriptor of the child is here. With
    `rehearsed`, the child may have done what is usual in its kind of standby. `before_request` is called at the last
    moment at which nothing can have begun.
    """
    components = key.components(kind, preload)
    name = key.digest(components)
    connection = connect(name)
    tries = 0
    while True:
        if connection is None:
            if not start or tries == 2:
                return "no standby runs" if not tries else "the standby does not stay"
            from .launch import launch

            launch(kind, preload, companion)
            tries += 1
            connection = connect(name)
            continue
        if before_request is not None:
            before_request()
        answer = _ask(connection, call, arguments, components, descriptors, program, rehearsed)
        if isinstance(answer, Begun):
            return answer
        connection.close()
        if not start or answer.startswith("refused: ") or tries == 2:
            return answer.removeprefix("refused: ")
        connection = None


def connect(name: str) -> wire.Socket | None:
    """Return a connection to the standby of that name, or None if it does not run."""
    try:
        directory = paths.open_directory(create=False)
    except FileNotFoundError:
        return None
    connection = wire.new_socket()
    try:
        connection.connect(paths.through(directory, f"{name}.sock"))
        wire.check_peer(connection)
    except (FileNotFoundError, ConnectionRefusedError):
        connection.close()
        return None
    except BaseException:
        connection.close()
        raise
    finally:
        os.close(directory)
    return connection


def leave(code: int) -> NoReturn:
    """End this process as the run ended: with its exit code, or by the signal that ended it."""
    import sys

    if code >= 0:
        sys.exit(code)
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))  # the program has dumped its core already
    with contextlib.suppress(OSError, ValueError):
        signal.signal(-code, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [-code])
    os.kill(os.getpid(), -code)
    sys.exit(128 - code)


def _ask(
    connection: wire.Socket,
    call: str,
    arguments: Sequence[Any],
    components: dict[str, str],
    descriptors: Mapping[int, int],
    program: tuple[str, str] | None,
    rehearsed: bool,
) -> Begun | str:
    inherited = identity.inherited_descriptors() if program is not None else []
    numbers = [*descriptors, *inherited]
    request = {
        "call": call,
        "arguments": list(arguments),
        "program": program,
        "rehearsed": rehearsed,
        "key": components,
        "descriptors": numbers,
        "terminal": any(here != there for there, here in descriptors.items() if there < 3 and program is not None),
        **identity.describe(),
    }
    body = wire.memory_file(request)
    directory = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        wire.send(connection, {"do": "run"}, [body, directory, *descriptors.values(), *inherited])
        message, received = wire.receive(connection)
    except (BrokenPipeError, ConnectionResetError):
        message, received = None, []
    finally:
        os.close(body)
        os.close(directory)
    if message is None:
        return "the standby went away"
    if "started" in message and received:
        return Begun(connection, message["started"], received[0])
    if "ended" in message:
        return f"refused: the standby's child ended before the program began (exit code {message['ended']})"
    text = str(message.get("refused", message))
    return text if text.startswith("StandbyError: the standby reloads") else f"refused: {text}"


class _Signals:
    """Turns the signals that a program would get into bytes on a pipe, for as long as the block lasts."""

    def __enter__(self) -> _Signals:
        self.readable, self._writable = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._before: dict[int, Any] = {}
        self._wakeup: int | None = None
        return self

    def catch(self) -> None:
        """Begin, if it has not. What the caller ignores stays ignored."""
        if self._wakeup is None:
            self._wakeup = signal.set_wakeup_fd(self._writable, warn_on_full_buffer=False)
        for number in _RELAYED:
            previous = signal.getsignal(number)
            if previous != signal.SIG_IGN and number not in self._before:
                self._before[number] = previous
                signal.signal(number, lambda *_: None)

    def pending(self) -> bytes:
        """Return the numbers of the signals that came."""
        try:
            return os.read(self.readable, 256)
        except BlockingIOError:
            return b""

    def __exit__(self, *_: object) -> None:
        for number, previous in self._before.items():
            signal.signal(number, previous if previous is not None else signal.SIG_DFL)
        if self._wakeup is not None:
            signal.set_wakeup_fd(self._wakeup)
        left = self.pending()
        os.close(self.readable)
        os.close(self._writable)
        for number in left:  # nobody was there to take them: they are meant for this process
            os.kill(os.getpid(), number)


def _wait(begun: Begun, signals: _Signals, terminal: Any = None) -> Outcome:
    poll = select.poll()
    poll.register(begun.connection.fileno(), select.POLLIN)
    poll.register(signals.readable, select.POLLIN)
    if terminal is not None:
        terminal.register(poll)
    try:
        while True:
            ready = poll.poll(None if terminal is None else terminal.patience_ms())
            if not ready:
                terminal.enter()
            for descriptor, events in ready:
                if descriptor == signals.readable:
                    for number in signals.pending():
                        _relay(begun, number, terminal)
                elif descriptor == begun.connection.fileno():
                    message = begun.message()
                    if message is None:
                        return begun.end_without_standby()
                    if "ended" in message:
                        if terminal is not None:
                            terminal.drain()
                        return Outcome(message["ended"])
                    if "stopped" in message:
                        _stop_here(begun, terminal)
                elif terminal is not None:
                    terminal.handle(descriptor, events, begun, poll)
    finally:
        begun.close()


def _relay(begun: Begun, number: int, terminal: Any) -> None:
    if number == signal.SIGWINCH and terminal is not None:
        terminal.resize()
    elif number == signal.SIGTSTP:
        suspend(begun.pid, begun.pid)
    elif number in _TO_THE_GROUP and terminal is None:
        begun.signal_group(number)
    elif number == signal.SIGCONT:
        begun.signal_group(number)
        if terminal is not None:
            terminal.enter()
    else:
        begun.signal(number)


def suspend(pid: int, group: int) -> None:
    """Stop a job as Ctrl-Z would.

    The kernel drops SIGTSTP's default action for a group whose parent is in another session, which a standby is. So a
    program that has its own handler gets SIGTSTP, one that ignores it gets nothing, and any other gets SIGSTOP.
    """
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as stream:
            fields = dict(line.split(":", 1) for line in stream if line.startswith(("SigCgt", "SigIgn")))
    except FileNotFoundError:
        return
    bit = 1 << (signal.SIGTSTP - 1)
    if int(fields["SigIgn"], 16) & bit:
        return
    number = signal.SIGTSTP if int(fields["SigCgt"], 16) & bit else signal.SIGSTOP
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _stop_here(begun: Begun, terminal: Any) -> None:
    """Stop with the program: the shell looks at this process. It goes on when somebody continues it."""
    if terminal is not None:
        terminal.drain()
        terminal.restore()
    previous = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
    os.kill(0 if terminal is not None else os.getpid(), signal.SIGTSTP)
    signal.signal(signal.SIGTSTP, previous)
    begun.signal_group(signal.SIGCONT)
    if terminal is not None:
        terminal.enter()


def _terminal() -> Any:
    covered = [number for number in range(3) if os.isatty(number)]
    if not covered:
        return None
    from .terminal import Terminal

    return Terminal(covered)
