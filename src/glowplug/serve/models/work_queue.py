"""Heavy work on models, one piece after the other, so that it costs the machine at most one piece's worth.

A piece may never end: a worker hangs in a model's first call, a file system does not answer. Nobody can tell that from
a piece that is only large, so it is not given up. It has its time; then the next one begins beside it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

Overdue = Callable[[float], None]  # told how long a piece was waited for


class WorkQueue:
    """Hands out turns. With `patience_s` of 0 a turn lasts as long as its work, however long that is.

    Each piece that is overdue already makes the time of the next one longer by as much again: pieces that are large
    and not stuck do not all end up side by side, where each would slow the others down.
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._turn = asyncio.Lock()
        self._overdue = 0

    @contextlib.asynccontextmanager
    async def turn(self, overdue: Overdue) -> AsyncIterator[None]:
        """Wait for a turn, and have it for the length of the block. `overdue` is told when others begin beside it."""
        await self._turn.acquire()
        patience_s, in_time = self._patience_s * (1 + self._overdue), True

        def pass_on() -> None:
            nonlocal in_time
            in_time = False
            self._overdue += 1
            self._turn.release()
            overdue(patience_s)

        timer = asyncio.get_running_loop().call_later(patience_s, pass_on) if patience_s > 0 else None
        try:
            yield
        finally:
            if timer is not None:
                timer.cancel()
            if in_time:
                self._turn.release()
            else:
                self._overdue -= 1
