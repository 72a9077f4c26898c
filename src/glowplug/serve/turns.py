"""Has connections that receive much read one after the other, a little at a time.

The event loop reads a connection for as long as there is something to read, megabytes at a time, before it looks at the
next one: a few dozen senders of large bodies would keep everybody else waiting for a quarter of a second.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

TURN_BYTES = 1 << 18  # what a connection may receive before the others have their turn
_AT_ONCE = 2  # connections whose turn comes in one round of the loop


class Turns:
    """The connections that wait for their turn to read. Each has stopped reading, and reads again when it is called."""

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()

    def wait(self, read: Callable[[], None]) -> None:
        """Have `read` called when it is the caller's turn."""
        self._waiting.append(read)
        if len(self._waiting) == 1:
            asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        for _ in range(min(_AT_ONCE, len(self._waiting))):
            self._waiting.popleft()()
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._next)
