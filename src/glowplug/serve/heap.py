"""Gives the front end's memory back to the system after large bodies: what malloc keeps, it keeps for ever.

Large messages are unfolded by threads, each with a heap of its own, and freed in other pieces than they came in: after
a few of them the process would hold several times what its bounds allow.
"""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

LARGE_BYTES = 1 << 18  # smaller ones are used again by the next request
_OWED_BYTES = 1 << 24  # so much may lie about
_PATIENCE_S = 0.1  # requests that follow one another use the same memory again
_LONGEST_S = 2.0  # and yet it is not kept for ever where they go on coming
_MAP_FROM = -3  # glibc's M_MMAP_THRESHOLD


@cache
def trimmer() -> Callable[[], Any] | None:
    """Return what gives free memory of this process back, where the C library has it (glibc has)."""
    found = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return None if found is None else lambda: found(0)


def map_what_is_large() -> None:
    """Have the C library map each large block on its own, so that it is given back as soon as it is free.

    Left to itself, glibc maps fewer the more it has seen freed, and keeps up to 32 MiB of each heap's.
    """
    change = getattr(ctypes.CDLL(None), "mallopt", None)
    if change is not None:
        change(_MAP_FROM, LARGE_BYTES)


class Heap:
    """The memory of a process with an event loop. `freed` is told of large things that are let go."""

    def __init__(self, trim: Callable[[], Any] | None = None) -> None:
        self._trim = trim or trimmer()
        self._owed_bytes = 0
        self._since = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self.trims = 0

    def freed(self, size: int) -> None:
        """Learn that something of this size is let go, now or in a moment."""
        if size < LARGE_BYTES or self._trim is None:
            return
        self._owed_bytes += size
        if self._owed_bytes < _OWED_BYTES:
            return
        loop = asyncio.get_running_loop()
        now = loop.time()
        if self._timer is None:
            self._since = now
        at = min(now + _PATIENCE_S, self._since + _LONGEST_S)
        if self._timer is not None:
            if at <= self._timer.when():
                return
            self._timer.cancel()
        self._timer = loop.call_at(at, self._give_back)

    def _give_back(self) -> None:
        assert self._trim is not None
        self._timer, self._owed_bytes = None, 0
        self.trims += 1
        self._trim()
