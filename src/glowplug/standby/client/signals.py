"""The signals that a client gets for its program, as something to read. Runs in the client.

A program may do anything with a signal, whatever this process would do: so every signal that can be held back is, from
the moment the program begins, and is passed on. A fault of this process itself still ends it, as the kernel does with a
fault that is held back.
"""

from __future__ import annotations

import os
import signal
from typing import Any, NamedTuple

from glowplug.core.errors import StandbyError
from glowplug.standby.kernel import call

_RECORD_BYTES = 128  # struct signalfd_siginfo, and siginfo_t too
_SEND = 424  # pidfd_send_signal, on every processor
_QUEUED = -1  # SI_QUEUE: sent with a value


class Received(NamedTuple):
    """One signal: its number, who sent it (0: the kernel), and what it was queued with."""

    number: int
    sender: int
    user: int
    value: int | None


class Signals:
    """All signals, from `open` on, for as long as the block lasts. What is not read is this process's own."""

    def __enter__(self) -> Signals:
        self.descriptor = -1
        self._before: set[Any] = set()
        return self

    def open(self) -> None:
        """Hold all signals back from now on."""
        mask = sum(1 << (number - 1) for number in _every()).to_bytes(8, "little")
        self._before = signal.pthread_sigmask(signal.SIG_BLOCK, _every())
        self.descriptor = call("signalfd", -1, mask, os.O_NONBLOCK | os.O_CLOEXEC)
        if self.descriptor < 0:
            signal.pthread_sigmask(signal.SIG_SETMASK, self._before)
            raise StandbyError("signals cannot be passed on here")

    def read(self) -> list[Received]:
        """Return the signals that came."""
        try:
            data = os.read(self.descriptor, 32 * _RECORD_BYTES)
        except BlockingIOError:
            return []
        found = []
        for at in range(0, len(data), _RECORD_BYTES):
            number, _, code, sender, user = (
                int.from_bytes(data[at + 4 * index : at + 4 * index + 4], "little", signed=index == 2)
                for index in range(5)
            )
            value = int.from_bytes(data[at + 48 : at + 56], "little") if code == _QUEUED else None
            if sender != os.getpid():  # SIGPIPE, when nobody reads what we write, is no message to the program
                found.append(Received(number, sender, user, value))
        return found

    def stop_here(self) -> bool:
        """Let SIGTSTP, which this process must have been sent, do what it does; tell whether it stopped us."""
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTSTP])
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTSTP])
        return signal.SIGCONT in signal.sigpending()

    def __exit__(self, *_: object) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            signal.pthread_sigmask(signal.SIG_SETMASK, self._before)


def send_queued(process: int, received: Received) -> None:
    """Send a signal on to a process, a pidfd, with the value that it was queued with."""
    assert received.value is not None
    parts = (received.number, 0, _QUEUED, 0, received.sender, received.user)
    record = b"".join(part.to_bytes(4, "little", signed=part < 0) for part in parts)
    record += received.value.to_bytes(8, "little")
    call("syscall", _SEND, process, received.number, record.ljust(_RECORD_BYTES, b"\0"), 0)


def _every() -> set[int]:
    return {int(number) for number in signal.valid_signals()} - {signal.SIGKILL, signal.SIGSTOP}
