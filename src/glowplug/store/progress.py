"""How far a transfer is, at what rate, and how long the rest will take."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from glowplug.core.clock import Clock, now_ns

_WINDOW_NS = 5_000_000_000  # the rate is that of the last seconds
_SOONEST_NS = 500_000_000  # before, the rate says nothing about the rest
_BETWEEN_NS = 100_000_000  # calls of the callback


@dataclass(frozen=True, slots=True)
class Transfer:
    """The state of a transfer. `seconds_left` is None as long as nothing is known about its rate."""

    done_bytes: int
    total_bytes: int
    bytes_per_s: float
    seconds_left: float | None


Progress = Callable[[Transfer], None]


class Meter:
    """Counts bytes, from any thread, and tells a callback, from the thread that calls `tell`."""

    def __init__(self, total_bytes: int, progress: Progress | None, *, clock: Clock = now_ns) -> None:
        self._total = total_bytes
        self._progress = progress
        self._clock = clock
        self._lock = threading.Lock()
        self._done = 0
        self._history: deque[tuple[int, int]] = deque([(clock(), 0)])
        self._told_ns: int | None = None

    def add(self, count: int) -> None:
        """Note that `count` more bytes are done."""
        with self._lock:
            self._done += count

    def reach(self, done: int) -> None:
        """Note that `done` bytes are done in all, as somebody else's transfer shows."""
        with self._lock:
            self._done = max(self._done, min(done, self._total))

    def tell(self, *, last: bool = False) -> None:
        """Tell the callback, if there is one and it was not told just now."""
        now = self._clock()
        if self._progress is None or (not last and self._told_ns is not None and now - self._told_ns < _BETWEEN_NS):
            return
        self._told_ns = now
        with self._lock:
            done = self._done
        self._history.append((now, done))
        while len(self._history) > 2 and now - self._history[0][0] > _WINDOW_NS:
            self._history.popleft()
        since, before = self._history[0]
        elapsed = now - since
        rate = (done - before) * 1e9 / elapsed if elapsed else 0.0
        left = max(0, self._total - done) / rate if rate and elapsed > _SOONEST_NS else None
        self._progress(Transfer(done, self._total, rate, left))
