"""Runs a program in a child of a standby and behaves, towards whoever started it, as if it were that program.

This module is on the path of every `glowplug run`, so it imports next to nothing: what only a terminal or a first start
needs is imported when it is needed.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from glowplug.standby import identity

from .job import STOPPING, suspend
from .request import Begun, Declined, begin
from .signals import Received, Signals, send_queued

_TO_THE_GROUP = (signal.SIGINT, signal.SIGQUIT)  # what a keyboard sends, it sends to all of a job


class Outcome:
    """How a request ended: `code` is an exit code or minus a signal; None: nothing was run, and `note` says why.

    `unusual`: the note is of interest to whoever did not ask for a standby, too.
    """

    __slots__ = ("code", "note", "unusual")

    def __init__(self, code: int | None, note: str = "", *, unusual: bool = False) -> None:
        self.code = code
        self.note = note
        self.unusual = unusual


def run(
    call: str,
    arguments: Sequence[Any],
    *,
    start: bool,
    kind: str,
    preload: tuple[str, ...],
    companion: str = "",
    program: tuple[str, str] | None = None,
    tell: Callable[[str], None] | None = None,
) -> Outcome:
    """Call `package.module:function` with plain values in a child, in the foreground; otherwise as `begin`."""
    terminal = _terminal()
    descriptors = {number: number for number in identity.open_standard()}
    if terminal is not None:
        descriptors.update(dict.fromkeys(terminal.covered, terminal.inner))
    try:
        with Signals() as signals:
            begun = begin(
                call,
                arguments,
                start=start,
                kind=kind,
                preload=preload,
                companion=companion,
                program=program,
                descriptors=descriptors,
                before_begin=signals.open,
                tell=tell,
            )
            if isinstance(begun, Declined):
                return Outcome(None, begun.reason, unusual=begun.unusual)
            if terminal is None:
                return _wait(begun, signals)
            with terminal:
                return _wait(begun, signals, terminal)
    finally:
        if terminal is not None:
            terminal.close()


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


def _wait(begun: Begun, signals: Signals, terminal: Any = None) -> Outcome:
    """Wait for the program's end, however long that takes, and pass on what comes for it."""
    poll = select.poll()
    for descriptor in (begun.connection.fileno(), begun.process, signals.descriptor):
        poll.register(descriptor, select.POLLIN)
    if terminal is not None:
        terminal.register(poll)
    try:
        while True:
            ready = poll.poll(None if terminal is None else terminal.patience_ms())
            if not ready:
                terminal.enter()
            for descriptor, events in ready:
                if descriptor == signals.descriptor:
                    for received in signals.read():
                        _relay(begun, received, terminal)
                elif descriptor == begun.connection.fileno():
                    message = begun.message()
                    if message is None:
                        return Outcome(begun.end(), "the standby was killed during the run")
                    if "ended" in message:
                        if terminal is not None:
                            terminal.drain()
                        return Outcome(message["ended"])
                    if "stopped" in message:
                        _stop_here(begun, signals, terminal)
                elif descriptor == begun.process:
                    if terminal is not None:
                        terminal.drain()
                    return Outcome(begun.end())
                elif terminal is not None:
                    terminal.handle(descriptor, events, begun, poll)
    finally:
        begun.close()


def _relay(begun: Begun, received: Received, terminal: Any) -> None:
    number = received.number
    if number == signal.SIGWINCH and terminal is not None and terminal.resize():
        return  # the kernel has told the program
    if number in STOPPING:
        suspend(begun.pid, begun.pid, number)
    elif number in _TO_THE_GROUP and terminal is None:
        begun.signal_group(number)
    elif number == signal.SIGCONT:
        begun.signal_group(number)
        if terminal is not None:
            terminal.enter()
    elif received.value is not None:
        send_queued(begun.process, received)
    else:
        begun.signal(number)


def _stop_here(begun: Begun, signals: Signals, terminal: Any) -> None:
    """Stop with the program: the shell looks at this process. It goes on when somebody continues it."""
    if terminal is not None:
        terminal.drain()
        terminal.restore()
    previous = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
    os.kill(0 if terminal is not None else os.getpid(), signal.SIGTSTP)
    stopped = signals.stop_here()
    signal.signal(signal.SIGTSTP, previous)
    if not stopped:  # the kernel does not stop a group that nobody could continue, nor shall the program be
        begun.signal_group(signal.SIGCONT)
    if terminal is not None:
        terminal.enter()


def _terminal() -> Any:
    covered = [number for number in range(3) if os.isatty(number)]
    if not covered:
        return None
    from .terminal import Terminal

    return Terminal(covered)
