"""What a watched loop made grow: values and their text. Judges samples; takes none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

WARM_UP = 2  # rounds that may allocate and trace for good reasons
LEAST_ROUNDS = 3
# Growth below this much a round is noise: malloc keeps pages, and a count that moves does so by whole numbers.
LEAST_SLOPE = {"rss_bytes": 200_000.0}
LEAST_COUNT = 0.5


@dataclass(frozen=True, slots=True)
class Place:
    """A line of the watched program, and how many things it made after the warm-up."""

    file: str
    line: int
    made: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Growth:
    """One thing that grows: how much each round, from what to what, and where it is made, most first."""

    name: str
    per_round: float
    first: int
    last: int
    places: tuple[Place, ...]

    def __str__(self) -> str:
        where = f", made at {', '.join(map(str, self.places[:3]))}" if self.places else ""
        if self.name == "rss_bytes":
            mega = self.per_round / 1e6
            return (
                f"resident memory: {mega:+.1f} MB a round ({self.first / 1e6:.0f} to {self.last / 1e6:.0f} MB){where}"
            )
        name = self.name.replace("_", " ")
        return f"{name}: {self.per_round:+.1f} a round ({self.first} to {self.last}){where}"


@dataclass(frozen=True, slots=True)
class Report:
    """The verdict over all rounds; `samples` holds one value a round for each thing that was counted."""

    rounds: int
    growing: tuple[Growth, ...]
    samples: dict[str, tuple[int, ...]]

    def __str__(self) -> str:
        if self.rounds < LEAST_ROUNDS:
            return f"{self.rounds} rounds seen: too few to judge growth, at least {LEAST_ROUNDS} are needed"
        if not self.growing:
            return f"{self.rounds} rounds: nothing grows"
        return "\n".join(
            [f"{self.rounds} rounds: {len(self.growing)} things grow", *(f"  {each}" for each in self.growing)]
        )


def judge(samples: dict[str, Sequence[int]], places: dict[str, tuple[Place, ...]]) -> Report:
    """Return what grows: a slope above the noise, and a rise in at least half of the rounds."""
    rounds = max((len(series) for series in samples.values()), default=0)
    growing = []
    for name, series in samples.items():
        values = list(series)[WARM_UP:] if len(series) >= WARM_UP + LEAST_ROUNDS else list(series)
        if len(values) < LEAST_ROUNDS:
            continue
        rises = sum(later > earlier for earlier, later in pairwise(values))
        per_round = slope(values)
        if per_round >= LEAST_SLOPE.get(name, LEAST_COUNT) and 2 * rises >= len(values) - 1:
            growing.append(Growth(name, per_round, values[0], values[-1], places.get(name, ())))
    return Report(rounds, tuple(growing), {name: tuple(series) for name, series in samples.items()})


def slope(values: Sequence[int]) -> float:
    """Return the least-squares slope over rounds 0, 1, 2, ..."""
    middle = (len(values) - 1) / 2
    spread = sum((position - middle) ** 2 for position in range(len(values)))
    return sum((position - middle) * value for position, value in enumerate(values)) / spread if spread else 0.0
