"""Compares what two programs answer for the same model and inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glowplug.core.tolerances import TOLERANCES, distance

Arrays = Mapping[str, NDArray[Any]]


def compare(expected: Arrays, seen: Arrays) -> tuple[float, str]:
    """Return the largest difference, relative to the largest value of its output, and what is wrong, if anything is.

    Outputs that go by another name elsewhere are told by their dtype and shape, in the order in which they come.
    """
    if len(seen) != len(expected):
        return 0.0, f"{len(seen)} outputs instead of {len(expected)}"
    left = dict(seen)
    worst, reason = 0.0, ""
    for name in sorted(expected, key=lambda name: name not in seen):
        wanted = expected[name]
        match = (
            name if name in left else next((key for key, one in left.items() if _alike(wanted, one)), next(iter(left)))
        )
        difference, wrong = _difference(wanted, left.pop(match))
        worst = max(worst, difference)
        reason = reason or (f"{name}: {wrong}" if wrong else "")
    return worst, reason


def _alike(one: NDArray[Any], other: NDArray[Any]) -> bool:
    return one.shape == other.shape and one.dtype == other.dtype


def _difference(expected: NDArray[Any], seen: NDArray[Any]) -> tuple[float, str]:
    if not _alike(expected, seen):
        return 0.0, f"{seen.dtype}{list(seen.shape)} instead of {expected.dtype}{list(expected.shape)}"
    tolerance = TOLERANCES.get(str(expected.dtype))
    if tolerance is None:
        different = int(np.sum(expected != seen))
        return 0.0, f"{different} of {expected.size} elements differ" if different else ""
    _, relative = distance(expected, seen)
    if relative == np.inf:
        return 0.0, "NaN or infinity in other places"
    return relative, "" if relative <= tolerance else f"relative difference {relative:.2g}, allowed is {tolerance:.0e}"
