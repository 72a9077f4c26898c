"""Ends the wait for workers that are busy with calls which nobody waits for any more.

TensorFlow runs a call to its end, whoever has gone. One that never ends would keep its worker for good, and all calls
behind it; after a while the worker is given up, and another one takes its place.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable
from typing import Generic, Protocol, TypeVar


class Busy(Protocol):
    """A worker with calls."""

    since: float  # when it began with the first of them, on the event loop's clock

    def is_forsaken(self) -> bool:
        """Whether it is busy with a call that nobody waits for."""


Worker = TypeVar("Worker", bound=Busy)


class Patience(Generic[Worker]):
    """Watches workers. One that is forsaken `seconds` after it began is given up; 0 seconds are for ever."""

    def __init__(
        self, seconds: float, workers: Callable[[], Iterable[Worker]], give_up: Callable[[Worker], None]
    ) -> None:
        self._seconds, self._workers, self._give_up = seconds, workers, give_up
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None

    def look(self) -> None:
        """Look at the workers, and again when one of them has had its time."""
        if not self._seconds or self._timer is not None:
            return
        now, soonest = self._loop.time(), math.inf
        for worker in list(self._workers()):
            if worker.is_forsaken():
                due = worker.since + self._seconds
                if due <= now:
                    self._give_up(worker)
                else:
                    soonest = min(soonest, due)
        if soonest < math.inf:
            self._timer = self._loop.call_at(soonest, self._look_again)

    def _look_again(self) -> None:
        self._timer = None
        self.look()
