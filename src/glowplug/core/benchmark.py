"""What a benchmark of one model found: `bench` measures it, `report` shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any, Literal

SCHEMA_VERSION = 1

# measured: answers like stock; differs: answers, but something else; absent: not there, or does not apply; failed: it
# could not take the model, crashed or gave no answer.
Outcome = Literal["measured", "differs", "absent", "failed"]


@dataclass(frozen=True, slots=True)
class Steady:
    """Calls after the first, with as many threads of computation as `threads`.

    A latency is the median call of one caller in one process; a rate is the calls of `threads` callers at once. There
    is one of each for each repeat.
    """

    threads: int
    latencies_ns: tuple[int, ...] = ()
    rates_per_second: tuple[float, ...] = ()

    @property
    def latency_ns(self) -> int | None:
        """The median of all repeats."""
        return round(median(self.latencies_ns)) if self.latencies_ns else None

    @property
    def rate_per_second(self) -> float | None:
        """The median of all repeats."""
        return median(self.rates_per_second) if self.rates_per_second else None


@dataclass(frozen=True, slots=True)
class Row:
    """One contestant. `reason` says what is wrong with it, where something is.

    Times to the first prediction, and to a loaded model, count from just before the process was made.
    `second_pss_bytes` is what another process with the same model adds to a host, its share of what it has in common
    with the first included; `second_private_bytes` is what it shares with nobody.
    """

    name: str
    title: str
    outcome: Outcome
    reason: str = ""
    first_ns: tuple[int, ...] = ()
    loaded_ns: tuple[int, ...] = ()
    cold_first_ns: tuple[int, ...] = ()
    steady: tuple[Steady, ...] = ()
    peak_rss_bytes: int | None = None
    second_pss_bytes: int | None = None
    second_private_bytes: int | None = None
    disk_bytes: int | None = None
    install_bytes: int | None = None
    difference: float | None = None
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def first_median_ns(self) -> int | None:
        """The median time to the first prediction with a warm page cache."""
        return round(median(self.first_ns)) if self.first_ns else None

    @property
    def cold_first_median_ns(self) -> int | None:
        """The same with a dropped page cache."""
        return round(median(self.cold_first_ns)) if self.cold_first_ns else None


@dataclass(frozen=True, slots=True)
class Benchmark:
    """All contestants for one model. `chosen` names the row of the bundle that `pack --engine auto` makes."""

    model: str
    rows: tuple[Row, ...]
    repeats: int
    machine: Mapping[str, Any]
    chosen: str = ""
    signature: str = ""
    inputs: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def row(self, name: str) -> Row | None:
        """Return the row of that name."""
        return next((row for row in self.rows if row.name == name), None)

    def to_json(self) -> dict[str, Any]:
        """Return the document that `--json` prints and `from_json` reads."""
        return {"schema": SCHEMA_VERSION, **asdict(self)}
