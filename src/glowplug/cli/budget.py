"""`glowplug budget`: hold a saved profile against limits, for CI. Exit code 1 says that one was exceeded."""

from __future__ import annotations

import argparse
from pathlib import Path

from .limits import Limits, check_lines, duration, hold_against, phase_limit

NAME = "budget"
HELP = "fail when a saved profile is over its limits"
EXAMPLE = """
glowplug budget start.json --max 4s
glowplug budget start.json --max-start 3s
glowplug budget start.json --max-phase import=2.5s --max-phase trace=800ms --max-first-step 6s
"""


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
    from glowplug.core.errors import UsageError
    from glowplug.core.profile_json import read_profile

    profile = read_profile(args.profile)
    limits = Limits(args.max, args.max_start, args.max_first_step, tuple(args.max_phase)) or _project_limits()
    checks = hold_against(limits, profile)
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
    print(*check_lines(checks), sep="\n")
    return 0 if good else 1


def _project_limits() -> Limits:
    """Return the limits of the project that this folder belongs to."""
    from .budget_settings import read_settings, settings_file

    path = settings_file(Path.cwd())
    return Limits() if path is None else read_settings(path).limits
