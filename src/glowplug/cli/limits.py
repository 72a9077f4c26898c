"""Limits of a start, and a profile held against them: for `glowplug budget` and for the pytest plugin."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from glowplug.core.clock import human_duration
from glowplug.core.errors import UsageError
from glowplug.core.profile import PHASES, Profile

_UNITS_NS = {"ms": 1_000_000, "us": 1_000, "s": 1_000_000_000, "m": 60_000_000_000}


@dataclass(frozen=True, slots=True)
class Limits:
    """What a start may take; None is no limit. `max_phase` has (phase, limit) pairs."""

    max: int | None = None
    max_start: int | None = None
    max_first_step: int | None = None
    max_phase: tuple[tuple[str, int], ...] = ()

    def __bool__(self) -> bool:
        return any(value is not None for value in (self.max, self.max_start, self.max_first_step)) or bool(
            self.max_phase
        )


@dataclass(frozen=True, slots=True)
class Check:
    """One limit and what the profile has against it."""

    name: str
    limit_ns: int
    seen_ns: int

    @property
    def good(self) -> bool:
        """Whether the profile is within the limit."""
        return self.seen_ns <= self.limit_ns

    def line(self, width: int) -> str:
        """Return it as a line of text, the name filled to `width`."""
        verdict = "ok" if self.good else f"over by {human_duration(self.seen_ns - self.limit_ns)}"
        seen, limit = human_duration(self.seen_ns), human_duration(self.limit_ns)
        return f"{self.name:<{width}}  {seen:>8} of {limit:>8}  {verdict}"


def duration(text: str) -> int:
    """Read a duration into nanoseconds: `2s`, `350ms`, `1.5m`; a bare number is seconds."""
    unit = next((unit for unit in _UNITS_NS if text.endswith(unit)), "")
    try:
        value = round(float(text.removesuffix(unit)) * _UNITS_NS[unit or "s"])
    except (ValueError, OverflowError):
        value = -1
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration: write 2s, 350ms or 1.5")
    return value


def phase_limit(text: str) -> tuple[str, int]:
    """Read `PHASE=TIME`."""
    name, separator, limit = text.partition("=")
    if not separator or name not in PHASES:
        raise argparse.ArgumentTypeError(f"{text!r} is no PHASE=TIME; phases are {', '.join(PHASES)}")
    return name, duration(limit)


def hold_against(limits: Limits, profile: Profile) -> list[Check]:
    """Return a check for each limit.

    A repeated profile is the run of median wall time; phases are compared by their own medians.
    """
    import statistics

    checks = []
    if limits.max is not None:
        checks.append(Check("total", limits.max, profile.wall_ns))
    if limits.max_start is not None:
        start = profile.cold_start
        checks.append(Check(f"cold start, to {start.until}", limits.max_start, start.ns))
    if limits.max_first_step is not None:
        checks.append(Check("to the end of the first step", limits.max_first_step, _first_step_ns(profile)))
    for name, limit_ns in limits.max_phase:
        values = profile.runs.phases.get(name) if profile.runs is not None else None
        seen_ns = round(statistics.median(values)) if values else profile.phases.get(name, 0)
        checks.append(Check(name, limit_ns, seen_ns))
    return checks


def check_lines(checks: list[Check]) -> list[str]:
    """Return the checks as lines of text, one below the other."""
    width = max((len(check.name) for check in checks), default=0)
    return [check.line(width) for check in checks]


def _first_step_ns(profile: Profile) -> int:
    for span in profile.of_kind("step"):
        if span.attrs.get("index") == 1 and profile.on_main_thread(span):
            return span.end_ns
    raise UsageError(
        "the profile has no first step to hold against a limit",
        seen=" ".join(profile.command),
        remedy="profile a run that trains or predicts, or use --max",
    )
