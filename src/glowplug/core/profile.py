"""What a profiled run looks like: the values that `probe` writes, `advise` judges and `report` renders.

These are plain values; `profile_json` reads and writes their JSON form. `docs/reference/profile.md` lists
every span kind and attribute. All times are integer nanoseconds since the launch of the root process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from . import display
from .clock import human_duration

SCHEMA_VERSION = 1
READY = "ready"  # the mark that says that a program has started

PHASES: tuple[str, ...] = (
    "interpreter",
    "import",
    "library_load",
    "runtime_init",
    "build",
    "initializers",
    "weights_read",
    "weights_decode",
    "weights_assign",
    "session",
    "trace",
    "graph_optimization",
    "xla",
    "optimizer_setup",
    "first_step",
    "steady_steps",
    "io_wait",
    "user_code",
    "exit",
    "unaccounted",
)


@dataclass(frozen=True, slots=True)
class Span:
    """One stretch of time on one thread. Its parent is on the same thread and encloses it."""

    id: int
    parent: int | None
    pid: int
    thread: int
    phase: str
    name: str
    start_ns: int
    end_ns: int
    attrs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def duration_ns(self) -> int:
        """Time from start to end, what is nested in it included."""
        return self.end_ns - self.start_ns

    @property
    def kind(self) -> str:
        """What sort of span this is: the key that rules and renderers match on."""
        return str(self.attrs.get("kind", ""))


@dataclass(frozen=True, slots=True)
class Series:
    """A quantity of the root process over time, as (time, value) pairs in order of time."""

    name: str
    points: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Process:
    """One process of the run. The first one of a profile is the root; `exit_code` is -N for signal N."""

    pid: int
    parent_pid: int
    command: tuple[str, ...]
    how: str
    start_ns: int
    end_ns: int
    exit_code: int | None
    python: bool
    attrs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Round:
    """One pass through a loop: what the process looked like when its call began, and how long the pass took.

    `duration_ns` runs from this round's call to the next one's; for the last round, to the end of its call.
    """

    start_ns: int
    duration_ns: int
    rss_bytes: int
    threads: int
    graph_ops: int
    traces: int


@dataclass(frozen=True, slots=True)
class Loop:
    """A line of user code that called the same expensive thing at least three times.

    `slopes` are least-squares fits over the rounds after the first: `ns_per_round`, `rss_bytes_per_round`,
    `threads_per_round`, `graph_ops_per_round`, `traces_per_round`. `adders` are the lines that added graph
    operations between the first and last round: site -> operations.
    """

    site: str
    function: str
    call: str
    pid: int
    rounds: tuple[Round, ...]
    slopes: Mapping[str, float]
    adders: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UserCall:
    """A function of the program's own code, or one of a library that it called, within the calls above it.

    `ns` is time of the phase `user_code` alone, what it called included; `own_ns` without that. A profile has them in
    the order of a tree: after each come those of greater `depth` that it called. `site` is the line at which it was
    seen most often; empty for a library's.
    """

    depth: int
    function: str
    site: str
    ns: int
    own_ns: int


@dataclass(frozen=True, slots=True)
class Remedy:
    """What to do about a finding. `command` is a Glowplug command line, `doc` a path under `docs/`."""

    text: str
    code: str = ""
    command: str = ""
    doc: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """A symptom that a rule saw, with its numbers. `spans` are the ids of the spans it rests on."""

    rule: str
    title: str
    evidence: Mapping[str, Any]
    saves_ns: int
    remedy: Remedy
    saves_bytes: int = 0
    spans: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Runs:
    """Every run of a repeated profile, in order. Its profile is the run of median wall time."""

    wall_ns: tuple[int, ...]
    phases: Mapping[str, tuple[int, ...]]
    cpu_ns: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ColdStart:
    """The part of a run that people wait for: until what, and how long it took."""

    until: str
    ns: int


@dataclass(frozen=True, slots=True)
class Profile:
    """One profiled run. `phases` holds every name of `PHASES` and sums to `wall_ns`."""

    command: tuple[str, ...]
    exit_code: int
    wall_ns: int
    environment: Mapping[str, Any]
    spans: tuple[Span, ...]
    phases: Mapping[str, int]
    series: tuple[Series, ...] = ()
    processes: tuple[Process, ...] = ()
    loops: tuple[Loop, ...] = ()
    calls: tuple[UserCall, ...] = ()
    notes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    runs: Runs | None = None

    @property
    def root_pid(self) -> int:
        """The process id of the target itself, or 0 when the profile names no process."""
        return self.processes[0].pid if self.processes else 0

    @property
    def cold_start(self) -> ColdStart:
        """To when the program said that it is ready; else to the first connection, the first step's end, or its own."""
        marks = (span for span in self.of_kind("mark") if span.name == READY)
        ready = next(marks, None)
        if ready is not None:
            return ColdStart("ready", ready.end_ns)
        accepted = min((span.start_ns for span in self.of_kind("connection")), default=None)
        if accepted is not None:
            return ColdStart("the first accepted connection", accepted)
        steps = (span for span in self.of_kind("step") if span.pid == self.root_pid and span.attrs.get("index") == 1)
        first = min(steps, key=lambda span: span.end_ns, default=None)
        if first is not None:
            return ColdStart("the end of the first step", first.end_ns)
        leaving = min((span.start_ns for span in self.of_kind("exit") if self.on_main_thread(span)), default=None)
        return ColdStart("the end of the program", self.wall_ns if leaving is None else leaving)

    def __repr__(self) -> str:
        """Say what it is of in a line: all of it would be thousands of spans."""
        start = f"{human_duration(self.cold_start.ns)} to {self.cold_start.until}"
        return f"<Profile of {' '.join(self.command)!r}: {start}, {len(self.findings)} findings>"

    def _repr_html_(self) -> str | None:
        """Show the report in a notebook."""
        return display.shown(self)

    def on_main_thread(self, span: Span) -> bool:
        """Say whether a span counts towards `phases`: it lies on the root process's main thread."""
        return span.pid == self.root_pid and span.thread == span.pid

    def of_kind(self, *kinds: str) -> Iterator[Span]:
        """Yield the spans of the given kinds, in order of start."""
        return (span for span in self.spans if span.attrs.get("kind") in kinds)

    def series_named(self, name: str) -> Series:
        """Return a series by name; one without points when it was not recorded."""
        return next((series for series in self.series if series.name == name), Series(name, ()))


def exclusive_ns(spans: Iterable[Span]) -> dict[int, int]:
    """Return the time of each span (by id) that none of its children covers."""
    own: dict[int, int] = {}
    parents: list[tuple[int, int]] = []
    for span in spans:
        own[span.id] = span.duration_ns
        if span.parent is not None:
            parents.append((span.parent, span.duration_ns))
    for parent, duration_ns in parents:
        if parent in own:
            own[parent] -= duration_ns
    return own


def phase_totals(spans: Iterable[Span], wall_ns: int) -> dict[str, int]:
    """Return exclusive time per phase for the spans of one thread; the rest of `wall_ns` is `unaccounted`."""
    chosen = list(spans)
    totals = dict.fromkeys(PHASES, 0)
    own = exclusive_ns(chosen)
    for span in chosen:
        totals[span.phase] += own[span.id]
    totals["unaccounted"] += wall_ns - sum(totals.values())
    return totals
