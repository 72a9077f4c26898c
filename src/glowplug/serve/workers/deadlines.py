"""Ends calls whose time is up, with one timer for all of them: timers are dear beside a small call."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable

from glowplug.core.errors import RequestError

from .jobs import Job

_SHORTEST_S = 0.001


class Deadlines:
    """Watches the calls that `unanswered` lists, from the earliest deadline to the next; `passed` is told of each."""

    def __init__(self, unanswered: Callable[[], Iterable[Job]], passed: Callable[[], None]) -> None:
        self._unanswered, self._passed = unanswered, passed
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._wakes = math.inf

    def watch(self, deadline: float) -> None:
        """Be awake at a time of the event loop's clock."""
        if deadline < self._wakes:
            if self._timer is not None:
                self._timer.cancel()
            self._wakes = deadline
            self._timer = self._loop.call_at(deadline, self._wake)

    def _wake(self) -> None:
        self._timer, self._wakes = None, math.inf
        now, next_one = self._loop.time(), math.inf
        for job in self._unanswered():
            if job.deadline <= now:
                job.fail(RequestError("the deadline passed before the model answered", code="DEADLINE_EXCEEDED"))
            elif not job.future.done():
                next_one = min(next_one, job.deadline)
        if next_one < math.inf:
            self.watch(max(next_one, now + _SHORTEST_S))
        self._passed()
