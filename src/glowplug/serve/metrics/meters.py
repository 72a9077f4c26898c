"""Counters and histograms that cost next to nothing to count with.

Those of prometheus_client take a lock at each step, which adds up over the meters of a request; here one thread counts,
and the library writes the page.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, UntypedMetricFamily

Labels = tuple[str, ...]


class Count:
    """One number that grows."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0

    def add(self, amount: int = 1) -> None:
        """Count further."""
        self.value += amount


class Spread:
    """How many values fell into each bucket, and their sum."""

    __slots__ = ("_bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def add(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self._bounds, value)] += 1
        self.sum += value


class Counter:
    """Counts by labels, as prometheus_client collects them. A `plain` name gets no `_total` behind it."""

    def __init__(self, name: str, text: str, labels: Labels, *, plain: bool = False) -> None:
        self._described, self._found = (name, text), dict[Labels, Count]()
        self._labels = labels
        self._family = UntypedMetricFamily if plain else CounterMetricFamily

    def of(self, *labels: str) -> Count:
        """Return the count with these labels; keep it, where it is needed often."""
        return self._found.setdefault(labels, Count())

    def counts(self) -> list[tuple[Labels, int]]:
        """Return all counts there are now. Other threads may ask too."""
        return [(labels, count.value) for labels, count in list(self._found.items())]

    def collect(self) -> Iterator[Any]:
        """Return what there is to write."""
        family = self._family(*self._described, labels=self._labels)
        for labels, count in self._found.items():
            family.add_metric(labels, count.value)
        yield family


class Histogram:
    """Spreads by labels, as prometheus_client collects them."""

    def __init__(self, name: str, text: str, labels: Labels, bounds: Sequence[float]) -> None:
        self._described, self._found = (name, text), dict[Labels, Spread]()
        self._labels, self._bounds = labels, bounds
        self._edges = [*(str(float(bound)) for bound in bounds), "+Inf"]

    def of(self, *labels: str) -> Spread:
        """Return the spread with these labels; keep it, where it is needed often."""
        return self._found.setdefault(labels, Spread(self._bounds))

    def collect(self) -> Iterator[Any]:
        """Return what there is to write."""
        family = HistogramMetricFamily(*self._described, labels=self._labels)
        for labels, spread in self._found.items():
            family.add_metric(labels, list(zip(self._edges, accumulate(spread.counts), strict=True)), spread.sum)
        yield family
