"""A terminal for the child: the client owns a pty, and the user's terminal only carries bytes to and from it.

A process of another session cannot have the user's terminal as its own, so without this Ctrl-C, Ctrl-Z, `/dev/tty` and
the window's size would not reach the program. Runs in the client.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import termios
from types import TracebackType
from typing import Any

from .job import suspend
from .request import Begun

_CHUNK = 65536
_LOOK_AGAIN_MS = 200


class Terminal:
    """The pty. `covered` are the standard descriptors that are terminals; the child has the `inner` end there."""

    def __init__(self, covered: list[int]) -> None:
        self.covered = covered
        self._real = covered[0]
        self._output = next((number for number in covered if number), 0)
        self._reads = 0 in covered
        self._settings = termios.tcgetattr(self._real)
        self._outer, self.inner = os.openpty()
        os.set_blocking(self._outer, False)
        termios.tcsetattr(self.inner, termios.TCSANOW, self._settings)
        self.resize()
        self._raw = False
        self._unsent = b""
        self._poll: Any = None

    def __enter__(self) -> Terminal:
        os.close(self.inner)  # so that the pty ends with its last user
        self.inner = -1
        self.enter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.restore()

    def close(self) -> None:
        """Give both ends up."""
        for descriptor in (self.inner, self._outer):
            if descriptor >= 0:
                os.close(descriptor)
        self.inner = self._outer = -1

    def enter(self) -> None:
        """Make the user's terminal pass every byte on, if this process is in the foreground."""
        if self._raw or not self._reads or not self._is_in_foreground():
            return
        raw = termios.tcgetattr(self._real)
        raw[0] &= ~(termios.BRKINT | termios.ICRNL | termios.INPCK | termios.ISTRIP | termios.IXON | termios.INLCR)
        raw[1] &= ~termios.OPOST
        raw[3] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN | termios.ISIG)
        raw[6] = list(raw[6])
        raw[6][termios.VMIN], raw[6][termios.VTIME] = 1, 0
        termios.tcsetattr(self._real, termios.TCSADRAIN, raw)
        self._raw = True
        self._watch()
        self.resize()

    def restore(self) -> None:
        """Give the user's terminal its own settings back."""
        if self._raw:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self._real, termios.TCSADRAIN, self._settings)
            self._raw = False
            if self._poll is not None:
                with contextlib.suppress(KeyError):
                    self._poll.unregister(self._real)

    def patience_ms(self) -> int | None:
        """Return how long to wait before `enter` is worth another try; None where it is not.

        A shell that brings a running job from the background to the foreground need not tell it: bash does not.
        """
        return _LOOK_AGAIN_MS if self._reads and not self._raw else None

    def resize(self) -> bool:
        """Give the pty the window's size; tell whether it was another, in which case the kernel tells the program."""
        with contextlib.suppress(OSError):
            size = fcntl.ioctl(self._real, termios.TIOCGWINSZ, bytes(8))
            if size != fcntl.ioctl(self._outer, termios.TIOCGWINSZ, bytes(8)):
                fcntl.ioctl(self._outer, termios.TIOCSWINSZ, size)
                return True
        return False

    def register(self, poll: Any) -> None:
        """Watch both sides; the user's only in the foreground, since what is typed elsewhere is not for us."""
        self._poll = poll
        poll.register(self._outer, select.POLLIN)
        self._watch()

    def handle(self, descriptor: int, events: int, begun: Begun, poll: Any) -> None:
        """Move what is there."""
        if self._outer < 0:
            return
        if descriptor == self._outer:
            if events & select.POLLOUT:
                self._send(b"", poll)
            if events & (select.POLLIN | select.POLLHUP) and not self._show():
                poll.unregister(self._outer)
        else:
            typed = self._typed(events)
            if typed:
                self._pass_on(typed, begun, poll)
            else:
                self._hang_up(poll)

    def drain(self) -> None:
        """Show what the program has written."""
        while self._show():
            pass

    def _typed(self, events: int) -> bytes:
        """Return what was typed; nothing means that the user's terminal is gone."""
        with contextlib.suppress(OSError):
            if events & select.POLLIN:
                return os.read(self._real, _CHUNK)
        return b""

    def _hang_up(self, poll: Any) -> None:
        """Do to the program's terminal what was done to the user's: it may live on, but not wait for us."""
        self._reads = self._raw = False
        for descriptor in (self._real, self._outer):
            with contextlib.suppress(KeyError):
                poll.unregister(descriptor)
        os.close(self._outer)
        self._outer = -1

    def _watch(self) -> None:
        if self._raw and self._poll is not None:
            self._poll.register(self._real, select.POLLIN)

    def _is_in_foreground(self) -> bool:
        try:
            return os.tcgetpgrp(self._real) == os.getpgrp()
        except OSError:  # it is gone
            self._reads = False
            return False

    def _pass_on(self, data: bytes, begun: Begun, poll: Any) -> None:
        settings = termios.tcgetattr(self._outer)
        key = settings[6][termios.VSUSP]
        if settings[3] & termios.ISIG and key != b"\0" and key in data:
            before, _, after = data.partition(key)
            self._send(before, poll)
            suspend(begun.pid, os.tcgetpgrp(self._outer))
            data = after
        self._send(data, poll)

    def _send(self, data: bytes, poll: Any) -> None:
        """Give the program what was typed; what its terminal cannot take yet waits."""
        self._unsent += data
        with contextlib.suppress(BlockingIOError):
            self._unsent = self._unsent[os.write(self._outer, self._unsent) :] if self._unsent else b""
        poll.modify(self._outer, select.POLLIN | (select.POLLOUT if self._unsent else 0))

    def _show(self) -> bool:
        try:
            data = memoryview(os.read(self._outer, _CHUNK))
        except (BlockingIOError, OSError):
            return False  # nothing more for now, or (EIO) nobody has the other end open
        with contextlib.suppress(OSError):  # the user's terminal is gone, and so is whoever would have read it
            while data:
                data = data[os.write(self._output, data) :]
        return True
