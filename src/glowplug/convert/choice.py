"""Chooses among bundles of one model by measuring them: each in fresh processes, in turn, as its users will start it.

The rule: with `start`, the soonest first prediction among those whose steady call is not clearly slower than the best
one's; with `steady`, the fastest steady call; with `memory`, the least private memory of one more instance. Where two
are within 5 % of each other, the next of these figures decides. A candidate that crashes or hangs is a row, and not
chosen.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Literal

from glowplug.bench.contestant import Contestant, ContestantError, Question, Running
from glowplug.bench.preparation import disk_bytes

Prefer = Literal["start", "steady", "memory", "any"]
PREFERENCES: tuple[Prefer, ...] = ("start", "steady", "memory", "any")

FEWEST_ROUNDS, AGREEING_ROUNDS, MOST_ROUNDS = 2, 3, 5
_SECONDS = 0.2  # of steady calls in each process
_LIMIT_S = 300.0
_CLOSE = 1.05  # within this, two figures are the same
_CLEAR = 1.3  # beyond this in every round, two rounds are enough
_SLOWER, _SLOWER_NS = 1.10, 1_000_000  # a steady call that is clearly slower is so by both


@dataclass(frozen=True, slots=True)
class Figures:
    """One candidate as it was measured: medians. `failed` says why there are none."""

    engine: str
    first_ns: int = 0
    steady_ns: int = 0
    another_bytes: int = 0
    disk_bytes: int = 0
    failed: str = ""


@dataclass(slots=True)
class _Measured:
    contestant: Contestant
    failed: str = ""
    first_ns: list[int] = field(default_factory=list)
    steady_ns: list[int] = field(default_factory=list)
    another_bytes: int = 0

    def figures(self) -> Figures:
        size = disk_bytes(self.contestant.model)
        if self.failed or not self.first_ns:
            return Figures(self.contestant.name, disk_bytes=size, failed=self.failed)
        first, steady = round(median(self.first_ns)), round(median(self.steady_ns))
        return Figures(self.contestant.name, first, steady, self.another_bytes, size)

    def of_round(self, number: int) -> Figures:
        """Return what one round alone would say."""
        return Figures(self.contestant.name, self.first_ns[number], self.steady_ns[number], self.another_bytes)


def measure(contestants: Sequence[Contestant], question: Question, prefer: Prefer) -> list[Figures]:
    """Measure until it is clear which is best, at most `MOST_ROUNDS` times."""
    measured = [_Measured(one) for one in contestants]
    for number in range(MOST_ROUNDS):
        able = [one for one in measured if not one.failed]
        for one in able[::-1] if number % 2 else able:
            _round(one, question, with_another=number == 0)
        if number + 1 >= FEWEST_ROUNDS and _is_clear(measured, prefer):
            break
    return [one.figures() for one in measured]


def best(rows: Sequence[Figures], prefer: Prefer) -> str:
    """Return the engine that the rule chooses, or nothing where all failed."""
    return _judge(rows, prefer)[0]


def as_record(rows: Sequence[Figures], prefer: Prefer) -> dict[str, Any]:
    """Return what the manifest keeps."""
    engines: dict[str, Any] = {}
    for row in rows:
        engines[row.engine] = {
            **({"failed": row.failed} if row.failed else {}),
            **({"disk_bytes": row.disk_bytes} if row.disk_bytes else {}),
            **(
                {"first_ns": row.first_ns, "steady_ns": row.steady_ns, "another_bytes": row.another_bytes}
                if row.first_ns
                else {}
            ),
        }
    return {"prefer": prefer, "engines": engines}


def contestant_for(engine: str, bundle: Path, import_path: Sequence[str], op_libraries: Sequence[str]) -> Contestant:
    """Return a bundle as something to be measured by this interpreter, with the modules that this process finds."""
    return Contestant(
        engine,
        engine,
        "glowplug_bundle",
        Path(sys.executable),
        bundle,
        import_path=tuple(import_path),
        op_libraries=tuple(op_libraries),
    )


def _round(one: _Measured, question: Question, *, with_another: bool) -> None:
    try:
        with Running(one.contestant, question, threads=0, limit_s=_LIMIT_S) as running:
            if with_another:
                # The first start of all brings files into the page cache: the second one is what counts.
                with Running(one.contestant, question, threads=0, limit_s=_LIMIT_S) as another:
                    one.another_bytes = another.memory().private_bytes
                    first_ns = another.first_ns
            else:
                first_ns = running.first_ns
            steady_ns, _ = running.steady(_SECONDS, callers=1)
    except ContestantError as error:
        one.failed = str(error)
        return
    one.first_ns.append(first_ns)
    one.steady_ns.append(steady_ns)


def _is_clear(measured: Sequence[_Measured], prefer: Prefer) -> bool:
    """Say whether every round so far chose the same: three of them, or two by a wide margin."""
    able = [one for one in measured if not one.failed]
    if len(able) < 2:
        return True
    rounds = len(able[0].first_ns)
    judged = [_judge([one.of_round(number) for one in able], prefer) for number in range(rounds)]
    enough = rounds >= AGREEING_ROUNDS or min(margin for _, margin in judged) >= _CLEAR
    return enough and len({engine for engine, _ in judged}) == 1


def _judge(rows: Sequence[Figures], prefer: Prefer) -> tuple[str, float]:
    """Return the engine that the rule chooses, and how far the next one is behind."""
    able = [row for row in rows if not row.failed]
    if not able:
        return "", 0.0
    if prefer == "start":
        fastest = min(row.steady_ns for row in able)
        able = [row for row in able if row.steady_ns <= max(fastest * _SLOWER, fastest + _SLOWER_NS)]
    decisive, *others = _figures_in_order(prefer)
    least = min(decisive(row) for row in able)
    behind = sorted(decisive(row) / max(1, least) for row in able)[1:]
    for value in (decisive, *others):
        least = min(value(row) for row in able)
        able = [row for row in able if value(row) <= least * _CLOSE]
    return able[0].engine, min(behind, default=float("inf"))


def _figures_in_order(prefer: Prefer) -> tuple[Callable[[Figures], int], ...]:
    figures: Mapping[str, Callable[[Figures], int]] = {
        "start": lambda row: row.first_ns,
        "steady": lambda row: row.steady_ns,
        "memory": lambda row: row.another_bytes,
    }
    return (figures[prefer], *(value for name, value in figures.items() if name != prefer))
