"""Monotonic time in integer nanoseconds, and how to write a duration for a person."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], int]

now_ns: Clock = time.perf_counter_ns


def human_duration(duration_ns: int) -> str:
    """Return a duration with three significant digits: `940 us`, `12.3 ms`, `4.56 s`."""
    for unit, scale in (("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)):
        if abs(duration_ns) >= scale:
            value = duration_ns / scale
            digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
            return f"{value:.{digits}f} {unit}"
    return f"{duration_ns} ns"


def human_bytes(count: int) -> str:
    """Return a byte count with three significant digits in powers of 1000: `434 MB`."""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if abs(value) < 1000 or unit == "GB":
            digits = 0 if unit == "B" or abs(value) >= 100 else 1 if abs(value) >= 10 else 2
            return f"{value:.{digits}f} {unit}"
        value /= 1000
    raise AssertionError("unreachable")
