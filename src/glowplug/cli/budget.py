"""`glowplug budget`: hold a saved profile against limits, for CI. Exit code 1 says that one was exceeded."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from glowplug.core.profile import Profile

NAME = "budget"
HELP = "fail when a saved profile is over its limits"
EXAMPLE = """
glowplug budget start.json --max 4s
glowplug budget start.json --max-start 3s
glowplug budget start.json --max-phase import=2.5s --max-phase trace=800ms --max-first-step 6s
"""

_UNITS_NS = {"ms": 1_000_000, "us": 1_000, "s": 1_000_000_000, "m": 60_000_000_000}


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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's options."""
    parser.add_argument("profile", type=Path, metavar="PROFILE", help="a file that `glowplug profile -o` wrote")
    parser.add_argument("--max", type=duration, metavar="TIME", help="limit of the whole run: 2s, 350ms, 1.5")
    parser.add_argument(
        "--max-start",
        type=duration,
        metavar="TIME",
        help="limit of the cold start: to ready, or to the first step's end",
    )
    parser.add_argument(
        "--max-first-step", type=duration, metavar="TIME", help="limit from launch to the end of the first step"
    )
    parser.add_argument(
        "--max-phase",
        type=phase_limit,
        action="append",
        default=[],
        metavar="PHASE=TIME",
        help="limit of one phase (repeatable)",
    )


def run(args: argparse.Namespace) -> int:
    """Print each check; 1 when one failed."""
    from glowplug.core.clock import human_duration
    from glowplug.core.errors import UsageError
    from glowplug.core.profile_json import read_profile

    profile = read_profile(args.profile)
    if args.max is None and args.max_start is None and args.max_first_step is None and not args.max_phase:
        _take_settings(args)
    checks = list(_checks(profile, args))
    if not checks:
        raise UsageError(
            "no limit was given", remedy="pass --max, --max-start or --max-phase, or fill [tool.glowplug.budget]"
        )
    good = all(check.good for check in checks)
    if args.json:
        import json

        entries = [
            {"name": check.name, "limit_ns": check.limit_ns, "seen_ns": check.seen_ns, "good": check.good}
            for check in checks
        ]
        print(json.dumps({"good": good, "checks": entries}, indent=2))
        return 0 if good else 1
    width = max(len(check.name) for check in checks)
    for check in checks:
        verdict = "ok" if check.good else f"over by {human_duration(check.seen_ns - check.limit_ns)}"
        seen, limit = human_duration(check.seen_ns), human_duration(check.limit_ns)
        print(f"{check.name:<{width}}  {seen:>8} of {limit:>8}  {verdict}")
    return 0 if good else 1


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
    from glowplug.core.profile import PHASES

    name, separator, limit = text.partition("=")
    if not separator or name not in PHASES:
        raise argparse.ArgumentTypeError(f"{text!r} is no PHASE=TIME; phases are {', '.join(PHASES)}")
    return name, duration(limit)


def _take_settings(args: argparse.Namespace) -> None:
    """Take the limits of the project that this folder belongs to."""
    from .budget_settings import read_limits, settings_file

    path = settings_file(Path.cwd())
    if path is not None:
        for name, limit in read_limits(path, duration, phase_limit).items():
            setattr(args, name, limit)


def _checks(profile: Profile, args: argparse.Namespace) -> list[Check]:
    """A repeated profile is the run of median wall time; phases are compared by their own medians."""
    import statistics

    checks = []
    if args.max is not None:
        checks.append(Check("total", args.max, profile.wall_ns))
    if args.max_start is not None:
        checks.append(Check(f"cold start, to {profile.cold_start.until}", args.max_start, profile.cold_start.ns))
    if args.max_first_step is not None:
        checks.append(Check("to the end of the first step", args.max_first_step, _first_step_ns(profile)))
    for name, limit_ns in args.max_phase:
        values = profile.runs.phases.get(name) if profile.runs is not None else None
        seen_ns = round(statistics.median(values)) if values else profile.phases.get(name, 0)
        checks.append(Check(name, limit_ns, seen_ns))
    return checks


def _first_step_ns(profile: Profile) -> int:
    from glowplug.core.errors import UsageError

    for span in profile.of_kind("step"):
        if span.attrs.get("index") == 1 and profile.on_main_thread(span):
            return span.end_ns
    raise UsageError(
        "the profile has no first step to hold against a limit",
        seen=" ".join(profile.command),
        remedy="profile a run that trains or predicts, or use --max",
    )
