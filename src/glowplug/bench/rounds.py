"""Measures contestants in turn, each time in fresh processes."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from glowplug.core.benchmark import Outcome, Row, Steady
from glowplug.probe.page_cache import cool

from .contestant import Contestant, ContestantError, Question, Running
from .equality import compare

THREADS = (1, 2)
_ROUNDS_OF_FEWER = 3  # rounds with fewer threads than the most: a steady call differs less than a start
_COLD_ROUNDS = 3  # each empties the page cache for all: programs of a gigabyte are read anew
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """How to measure. `seconds` is how long steady calls are timed; `limit_s` ends a wait for any answer."""

    repeats: int = 5
    cold: bool = False
    seconds: float = 0.5
    limit_s: float = 600.0


@dataclass(slots=True)
class _Tally:
    """What is known of one contestant so far."""

    contestant: Contestant
    outcome: Outcome = "measured"
    reason: str = ""
    answers: dict[str, Any] = field(default_factory=dict)
    difference: float | None = None
    first_ns: list[int] = field(default_factory=list)
    loaded_ns: list[int] = field(default_factory=list)
    cold_ns: list[int] = field(default_factory=list)
    latencies_ns: dict[int, list[int]] = field(default_factory=dict)
    rates: dict[int, list[float]] = field(default_factory=dict)
    peak_bytes: int | None = None
    second_pss_bytes: int | None = None
    second_private_bytes: int | None = None

    def row(self) -> Row:
        """Return it as a row."""
        return Row(
            self.contestant.name,
            self.contestant.title,
            self.outcome,
            self.reason,
            tuple(self.first_ns),
            tuple(self.loaded_ns),
            tuple(self.cold_ns),
            tuple(Steady(n, tuple(self.latencies_ns[n]), tuple(self.rates[n])) for n in self.latencies_ns),
            self.peak_bytes,
            self.second_pss_bytes,
            self.second_private_bytes,
            difference=self.difference,
        )


def measure(
    contestants: Sequence[Contestant],
    question: Question,
    plan: Plan,
    progress: Progress | None = None,
    *,
    reference: str = "",
) -> list[Row]:
    """Return a row for each contestant, in their order; the one named `reference` says which answers are right.

    Each is started once before anything counts: that fills the page cache and each program's own caches, gives the
    answers to compare, and tells whether it can do it at all.
    """
    tell = progress or (lambda text: None)
    tallies = [_Tally(one) for one in contestants]
    os.sync()  # pages of a file just written count as private until they are on the disk
    for tally in tallies:
        tell(f"try {tally.contestant.title}")
        _attempt(_rehearse, tally, question, plan)
    _judge(tallies, reference)
    for number in range(plan.repeats):
        tell(f"round {number + 1} of {plan.repeats}")
        step = _start_warm if number < _ROUNDS_OF_FEWER else _start_with_most_threads
        for tally in _in_turn(tallies, number):
            _attempt(step, tally, question, plan)
    cold_rounds = min(plan.repeats, _COLD_ROUNDS) if plan.cold else 0
    for number in range(cold_rounds):
        tell(f"round {number + 1} of {cold_rounds}, page cache dropped")
        for tally in _in_turn(tallies, number):
            _attempt(_start_cold, tally, question, plan)
    return [tally.row() for tally in tallies]


def _in_turn(tallies: Sequence[_Tally], number: int) -> list[_Tally]:
    """Return who can be measured, the other way round every second time."""
    able = [one for one in tallies if one.outcome in ("measured", "differs")]
    return able[::-1] if number % 2 else able


def _attempt(step: Callable[[_Tally, Question, Plan], None], tally: _Tally, question: Question, plan: Plan) -> None:
    try:
        step(tally, question, plan)
    except ContestantError as error:
        tally.outcome, tally.reason = "failed", str(error)


def _rehearse(tally: _Tally, question: Question, plan: Plan) -> None:
    with Running(tally.contestant, question, threads=THREADS[-1], limit_s=plan.limit_s) as one:
        tally.answers = one.answers()
        tally.peak_bytes = one.memory().peak_rss_bytes
        with Running(tally.contestant, question, threads=THREADS[-1], limit_s=plan.limit_s) as another:
            memory = another.memory()
    tally.second_pss_bytes, tally.second_private_bytes = memory.pss_bytes, memory.private_bytes


def _judge(tallies: Sequence[_Tally], reference: str) -> None:
    right = next((one.answers for one in tallies if one.contestant.name == reference and one.answers), None)
    for tally in tallies:
        if right is None or tally.outcome != "measured":
            continue
        tally.difference, reason = compare(right, tally.answers)
        if reason:
            tally.outcome, tally.reason = "differs", f"answers something else: {reason}"


def _start_with_most_threads(tally: _Tally, question: Question, plan: Plan) -> None:
    _start_warm(tally, question, plan, THREADS[-1:])


def _start_warm(tally: _Tally, question: Question, plan: Plan, counts: Sequence[int] = THREADS) -> None:
    for threads in counts:
        with Running(tally.contestant, question, threads=threads, limit_s=plan.limit_s) as running:
            if threads == THREADS[-1]:
                tally.first_ns.append(running.first_ns)
                tally.loaded_ns.append(running.loaded_ns)
            latency, rate = running.steady(plan.seconds, threads)
        tally.latencies_ns.setdefault(threads, []).append(latency)
        tally.rates.setdefault(threads, []).append(rate)


def _start_cold(tally: _Tally, question: Question, plan: Plan) -> None:
    cool(())
    with Running(tally.contestant, question, threads=THREADS[-1], limit_s=plan.limit_s) as running:
        tally.cold_ns.append(running.first_ns)
