"""Two profiles side by side, by phase, with noise taken into account.

Where runs were repeated, a difference counts only when it is larger than chance would make it: the half-width of a
99 % Welch interval for the difference of the means, because some twenty rows are judged at once. The values shown
are medians. One run on each side says nothing about noise, and the verdict then says so.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from glowplug.core.profile import PHASES, Profile

FASTER, SLOWER, SAME, UNKNOWN = "faster", "slower", "same", "unknown"
SMALLEST_NS = 1_000_000  # below a millisecond a difference is not worth a verdict, however steady

# Two-sided 99 % quantiles of Student's t by degrees of freedom.
_T99 = (
    63.657,
    9.925,
    5.841,
    4.604,
    4.032,
    3.707,
    3.499,
    3.355,
    3.250,
    3.169,
    3.106,
    3.055,
    3.012,
    2.977,
    2.947,
)
_T99_MORE = ((20, 2.947), (30, 2.845), (60, 2.750), (math.inf, 2.660))


@dataclass(frozen=True, slots=True)
class Change:
    """One row: the medians of both sides, and whether their difference stands out of the noise.

    `noise_ns` is None where neither side was repeated.
    """

    name: str
    before_ns: int
    after_ns: int
    noise_ns: int | None
    verdict: str

    @property
    def delta_ns(self) -> int:
        """Positive where the second profile is slower."""
        return self.after_ns - self.before_ns


@dataclass(frozen=True, slots=True)
class Count:
    """Something that is counted, not timed: modules, traces, bytes of memory."""

    name: str
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """Before against after: the whole, each phase that either side has, and what is counted."""

    total: Change
    phases: tuple[Change, ...]
    counts: tuple[Count, ...]
    before_runs: int
    after_runs: int
    notes: tuple[str, ...] = ()

    @property
    def slower(self) -> bool:
        """Whether the whole run got slower beyond noise."""
        return self.total.verdict == SLOWER


def compare(before: Profile, after: Profile) -> Comparison:
    """Compare two profiles of the same program."""
    changes = []
    for phase in PHASES:
        values = _phase_values(before, phase), _phase_values(after, phase)
        if any(values[0]) or any(values[1]):
            changes.append(_change(phase, *values))
    return Comparison(
        total=_change("total", _wall_values(before), _wall_values(after)),
        phases=tuple(changes),
        counts=tuple(_counts(before, after)),
        before_runs=len(_wall_values(before)),
        after_runs=len(_wall_values(after)),
        notes=tuple(_notes(before, after)),
    )


def encode_comparison(comparison: Comparison) -> dict[str, Any]:
    """Return the comparison as JSON-ready values."""
    return {
        "total": _encode_change(comparison.total),
        "phases": [_encode_change(change) for change in comparison.phases],
        "counts": [{"name": count.name, "before": count.before, "after": count.after} for count in comparison.counts],
        "before_runs": comparison.before_runs,
        "after_runs": comparison.after_runs,
        "notes": list(comparison.notes),
    }


def _encode_change(change: Change) -> dict[str, Any]:
    return {
        "name": change.name,
        "before_ns": change.before_ns,
        "after_ns": change.after_ns,
        "delta_ns": change.delta_ns,
        "noise_ns": change.noise_ns,
        "verdict": change.verdict,
    }


def _wall_values(profile: Profile) -> tuple[int, ...]:
    return profile.runs.wall_ns if profile.runs is not None and profile.runs.wall_ns else (profile.wall_ns,)


def _phase_values(profile: Profile, phase: str) -> tuple[int, ...]:
    values = profile.runs.phases.get(phase, ()) if profile.runs is not None else ()
    return tuple(values) or (profile.phases.get(phase, 0),)


def _change(name: str, before: Sequence[int], after: Sequence[int]) -> Change:
    middle = round(statistics.median(before)), round(statistics.median(after))
    noise_ns = _noise_ns(before, after)
    delta_ns = middle[1] - middle[0]
    if noise_ns is None:
        verdict = UNKNOWN if abs(delta_ns) >= SMALLEST_NS else SAME
    elif abs(delta_ns) < SMALLEST_NS or abs(delta_ns) <= noise_ns:
        verdict = SAME
    else:
        verdict = SLOWER if delta_ns > 0 else FASTER
    return Change(name, *middle, noise_ns, verdict)


def _noise_ns(before: Sequence[int], after: Sequence[int]) -> int | None:
    """Return how large a difference chance alone explains, or None when there is nothing to judge it by."""
    repeated = [side for side in (before, after) if len(side) > 1]
    if not repeated:
        return None
    if len(repeated) == 1:  # take the other side, of one run, to be as noisy
        variance = statistics.variance(repeated[0])
        error = variance / len(before) + variance / len(after)
        return math.ceil(_quantile(len(repeated[0]) - 1) * math.sqrt(error))
    parts = [(statistics.variance(side) / len(side), len(side) - 1) for side in repeated]
    error = sum(part for part, _ in parts)
    if error == 0:
        return 0
    freedom = error**2 / sum(part**2 / degrees for part, degrees in parts)
    return math.ceil(_quantile(freedom) * math.sqrt(error))


def _quantile(freedom: float) -> float:
    degrees = max(1, math.floor(freedom + 1e-9))
    if degrees <= len(_T99):
        return _T99[degrees - 1]
    return next(value for limit, value in _T99_MORE if degrees <= limit)


def _counts(before: Profile, after: Profile) -> list[Count]:
    pairs = [
        Count(name, before.environment[key], after.environment[key])
        for name, key in (("modules imported", "modules"), ("peak memory", "peak_rss_bytes"))
        if isinstance(before.environment.get(key), int) and isinstance(after.environment.get(key), int)
    ]
    traces = [sum(1 for _ in profile.of_kind("trace")) for profile in (before, after)]
    return [*pairs, Count("traces", *traces)] if any(traces) else pairs


def _notes(before: Profile, after: Profile) -> list[str]:
    notes = []
    if before.runs is None and after.runs is None:
        notes.append("one run each: noise is not known; profile with --repeat 5 to judge the differences")
    elif min(len(_wall_values(before)), len(_wall_values(after))) < 3:
        notes.append("fewer than three runs on a side: only large differences can be told from noise")
    if before.command != after.command:
        notes.append("the commands differ")
    if before.exit_code != after.exit_code:
        notes.append(f"the runs ended differently: exit {before.exit_code} and {after.exit_code}")
    for key, what in (("page_cache", "page cache"), ("cpu_count", "number of CPUs"), ("python", "Python")):
        old, new = before.environment.get(key), after.environment.get(key)
        if old is not None and new is not None and old != new:
            notes.append(f"the {what} differs: {old} and {new}")
    return notes
