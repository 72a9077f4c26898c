"""Gives memory back to the system after large calls: what malloc keeps for the next one, it keeps for ever."""

from __future__ import annotations

import select
import socket

from glowplug.serve.heap import trimmer

LARGE_BYTES = 1 << 24  # of the tensors of a call, in or out
_PATIENCE_MS = 100  # calls that follow one another use the same memory again
_MAX_CALLS = 256  # and yet it is not kept for ever where small ones follow a large one


class Heap:
    """The memory of a worker. `used` is told of each call, `wait` comes before the next is read."""

    def __init__(self) -> None:
        self._trim = trimmer()
        self._owed, self._calls = False, 0
        self.trims = 0

    def used(self, size: int) -> None:
        """Learn how many bytes a call brought and gave."""
        self._calls += 1
        if size > LARGE_BYTES and self._trim is not None:
            self._owed, self._calls = True, 0

    def wait(self, channel: socket.socket) -> None:
        """Give back what large calls left, once no call has come for a moment. Nothing of them may be held any more."""
        if not self._owed or self._trim is None:
            return
        poll = select.poll()
        poll.register(channel, select.POLLIN)
        if self._calls < _MAX_CALLS and poll.poll(_PATIENCE_MS):
            return
        self._owed = False
        self.trims += 1
        self._trim()
