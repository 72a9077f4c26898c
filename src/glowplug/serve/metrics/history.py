"""The last five minutes as numbers, for charts: requests, errors, latency, memory. Bounded, and cheap to keep.

One sample every two seconds from what is counted anyway. Memory is read less often and by a thread, since the kernel
walks through the pages of a process to tell its share.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from glowplug.serve.models.catalog import Catalog
from glowplug.serve.models.versions import State

from .registry import Metrics, pss_bytes

STEP_S = 2.0
SAMPLES = 150
_MEMORY_EVERY = 5  # samples
_RATE_OVER = 5

VersionKey = tuple[str, int]


class History:
    """Takes samples while `run` runs."""

    def __init__(
        self,
        metrics: Metrics,
        catalog: Catalog,
        pids: Mapping[int, int],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._metrics, self._catalog, self._pids, self._clock = metrics, catalog, pids, clock
        self._rows: deque[tuple[float | None, ...]] = deque(maxlen=SAMPLES)
        self._totals = (0, 0)
        self._answers: deque[tuple[float, dict[VersionKey, int]]] = deque(maxlen=_RATE_OVER + 1)
        self._sampled = clock()
        self.memory: dict[VersionKey, int] = {}  # share of memory of a version's workers, in bytes
        self._front_end_bytes = 0

    async def run(self) -> None:
        """Take samples until cancelled."""
        loop, count, measured = asyncio.get_running_loop(), 0, dict[VersionKey, list[int]]()
        while True:
            workers = self._workers()
            if count % _MEMORY_EVERY == 0 or workers != measured:
                self.memory, self._front_end_bytes = await loop.run_in_executor(None, self._measure, workers)
                measured = workers
            self.sample()
            count += 1
            await asyncio.sleep(STEP_S)

    def sample(self) -> None:
        """Take one sample."""
        now, (requests, errors) = self._clock(), self._metrics.totals()
        seconds = max(now - self._sampled, 1e-3)
        before, self._totals, self._sampled = self._totals, (requests, errors), now
        latencies = sorted(self._metrics.take_latencies())
        self._rows.append(
            (
                round((requests - before[0]) / seconds, 2),
                round((errors - before[1]) / seconds, 2),
                _quantile_ms(latencies, 0.5),
                _quantile_ms(latencies, 0.99),
                sum(self.memory.values()),
                self._front_end_bytes,
            )
        )
        self._answers.append((now, self._metrics.answer_counts()))

    def series(self) -> dict[str, Any]:
        """Return the samples as columns, oldest first."""
        names = ("requests", "errors", "p50_ms", "p99_ms", "workers_bytes", "front_end_bytes")
        columns = zip(*self._rows, strict=True) if self._rows else ([] for _ in names)
        return {"step_s": STEP_S, "samples": SAMPLES, **dict(zip(names, map(list, columns), strict=True))}

    def rate(self, model: str, version: int) -> float:
        """Return the answers a second of a version, over the last samples."""
        if len(self._answers) < 2:
            return 0.0
        (first, old), (last, new) = self._answers[0], self._answers[-1]
        key = model, version
        return round((new.get(key, 0) - old.get(key, 0)) / max(last - first, 1e-3), 2)

    def _workers(self) -> dict[VersionKey, list[int]]:
        return {
            (version.model, version.number): [self._pids.get(number, 0) for number in version.group.numbers]
            for model in self._catalog.models.values()
            for version in model.versions.values()
            if version.group is not None and version.state is State.AVAILABLE
        }

    @staticmethod
    def _measure(workers: dict[VersionKey, list[int]]) -> tuple[dict[VersionKey, int], int]:
        """Run in a thread."""
        return {key: sum(map(pss_bytes, pids)) for key, pids in workers.items()}, pss_bytes(os.getpid())


def _quantile_ms(values: list[float], share: float) -> float | None:
    """Return a quantile of sorted seconds in milliseconds, `None` where there are none."""
    return round(values[min(len(values) - 1, int(len(values) * share))] * 1000, 3) if values else None
