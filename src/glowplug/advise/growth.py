"""What grows from one round of a loop to the next, and what the growth cost."""

from __future__ import annotations

from statistics import median

from glowplug.core.profile import Loop

_EARLY = 5


def excess_ns(loop: Loop) -> int:
    """Return the time by which rounds exceeded the early ones: what a loop of constant cost would have saved.

    The first round pays for what happens once and the last ends with its call, so neither counts.
    """
    durations = [each.duration_ns for each in loop.rounds[1:-1]]
    if len(durations) < 2:
        return 0
    early = median(durations[:_EARLY]) if len(durations) > 2 * _EARLY else min(durations)
    return round(sum(max(0.0, duration - early) for duration in durations))


def grows_steadily(values: list[int]) -> bool:
    """Say whether a quantity still rises at the end of a loop, so that it is a slope and not a settling.

    Compares the medians of three equal parts of the rounds after the first.
    """
    later = values[1:]
    third = len(later) // 3
    if third == 0:
        return False
    parts = [median(later[:third]), median(later[third : 2 * third]), median(later[-third:])]
    return parts[0] < parts[1] < parts[2]


def grown_bytes(loop: Loop) -> int:
    """Return the memory that the rounds after the first added, from the fitted slope."""
    return max(0, round(loop.slopes.get("rss_bytes_per_round", 0.0) * (len(loop.rounds) - 1)))
