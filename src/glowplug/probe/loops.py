"""Find lines of user code that make the same expensive call again and again, and what grows with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from glowplug.core.profile import Loop, Round

from .events import OPS, ROUND, Image

MINIMUM_ROUNDS = 3
MAXIMUM_ROUNDS = 2000

_SLOPES = {
    "ns_per_round": "duration_ns",
    "rss_bytes_per_round": "rss_bytes",
    "threads_per_round": "threads",
    "graph_ops_per_round": "graph_ops",
    "traces_per_round": "traces",
}


def find_loops(images: Iterable[Image], origin_ns: int) -> list[Loop]:
    """Return every loop of a run, the longest first."""
    found: list[Loop] = []
    for image in images:
        calls: dict[tuple[str, str, str], list[tuple[int, ...]]] = {}
        added: list[tuple[int, str, int]] = []
        for event in image.events:
            if event[0] == ROUND:
                _, call, site, function, *figures = event
                calls.setdefault((call, site, function), []).append(tuple(figures))
            elif event[0] == OPS:
                added.append(event[1:])
        for (call, site, function), entries in calls.items():
            if len(entries) < MINIMUM_ROUNDS:
                continue
            rounds = _rounds(entries, origin_ns)
            adders: dict[str, int] = {}
            for at_ns, where, count in added:
                if entries[0][0] < at_ns <= entries[-1][1]:
                    adders[where] = adders.get(where, 0) + count
            top = sorted(adders.items(), key=lambda item: -item[1])[:20]
            kept = _thin(rounds)
            found.append(Loop(site, function, call, image.pid, kept, _slopes(rounds), dict(top)))
    return sorted(found, key=lambda loop: loop.rounds[0].start_ns - _end(loop))


def _end(loop: Loop) -> int:
    return loop.rounds[-1].start_ns + loop.rounds[-1].duration_ns


def _rounds(entries: Sequence[tuple[int, ...]], origin_ns: int) -> list[Round]:
    rounds = []
    for index, (start_ns, end_ns, rss_bytes, threads, graph_ops, traces) in enumerate(entries):
        until_ns = entries[index + 1][0] if index + 1 < len(entries) else end_ns
        rounds.append(Round(start_ns - origin_ns, until_ns - start_ns, rss_bytes, threads, graph_ops, traces))
    return rounds


def _thin(rounds: list[Round]) -> tuple[Round, ...]:
    if len(rounds) <= MAXIMUM_ROUNDS:
        return tuple(rounds)
    step = len(rounds) / MAXIMUM_ROUNDS
    return tuple(rounds[int(index * step)] for index in range(MAXIMUM_ROUNDS))


def _slopes(rounds: Sequence[Round]) -> dict[str, float]:
    """Fit a line through the rounds after the first, which pays for what happens once.

    The last round's duration ends with its call, not with a next round: it is left out of the fit of time.
    """
    later = rounds[1:]
    fitted = {}
    for slope, name in _SLOPES.items():
        values = [float(getattr(entry, name)) for entry in later]
        fitted[slope] = least_squares(values[:-1] if name == "duration_ns" else values)
    return fitted


def least_squares(values: Sequence[float]) -> float:
    """Return the slope of the line that fits equally spaced values best; 0 for fewer than two."""
    count = len(values)
    if count < 2:
        return 0.0
    middle, mean = (count - 1) / 2, sum(values) / count
    spread = sum((index - middle) ** 2 for index in range(count))
    return sum((index - middle) * (value - mean) for index, value in enumerate(values)) / spread
