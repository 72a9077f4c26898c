"""`glowplug standby`: start, look at and stop the warm fork servers of this user."""

from __future__ import annotations

import argparse
from typing import Any

from glowplug.cli.options import span

NAME = "standby"
HELP = "start, look at or stop the warm standby that runs begin from"
EXAMPLE = """
glowplug standby start
glowplug standby status
glowplug standby stop
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb."""
    parser.add_argument("action", choices=("start", "status", "stop"), help="what to do")
    parser.add_argument(
        "--kind",
        choices=("python", "native"),
        default=None,
        help="for start: python for programs (default), native for glowplug.load(..., standby=True)",
    )
    parser.add_argument(
        "--preload",
        metavar="MODULES",
        help="for start: what a python standby imports, separated by commas (default: tensorflow,keras)",
    )
    parser.add_argument(
        "--idle", type=span, metavar="SECONDS", help="for start: end when unused for this long (default: 1800)"
    )
    parser.add_argument("--all", action="store_true", help="for stop: those of other environments, too")


def run(args: argparse.Namespace) -> int:
    """Do what was asked; return the exit code."""
    code = {"start": _start, "stop": _stop, "status": _status}[args.action](args)
    _tell_of_places_passed_over()
    return code


def _start(args: argparse.Namespace) -> int:
    from glowplug.core.errors import UsageError
    from glowplug.launch.warm import COMPANION, PRELOAD
    from glowplug.standby import starting
    from glowplug.standby.client import control

    kind = args.kind or "python"
    if kind == "native" and args.preload:
        raise UsageError("a native standby has no preload list", seen=args.preload, remedy="leave --preload out")
    if kind == "native":
        from glowplug.loader import remote

        preload, companion = remote.PRELOAD, ""
    else:
        preload, companion = tuple(args.preload.split(",")) if args.preload else PRELOAD, COMPANION
    name = starting.start(kind, preload, companion, idle_s=args.idle)
    found = control.status(name)
    _print(args, found, f"standby {name} runs: process {found['pid']}, {found['preload']}")
    return 0


def _status(args: argparse.Namespace) -> int:
    from glowplug.standby.client import control

    found = [one.described() for one in control.standbys()]
    lines = [line for one in found for line in _lines(one)]
    _print(args, {"standbys": found}, "\n".join(lines) or "no standby runs")
    return 0


def _lines(one: dict[str, Any]) -> list[str]:
    from time import localtime, strftime

    from glowplug.core.clock import human_bytes

    memory = human_bytes(one["memory_bytes"])
    if "problem" in one:
        return [f"standby {one['name']}: process {one['pid']}, {memory}", f"  {one['problem']}: glowplug standby stop"]
    since = strftime("%Y-%m-%d %H:%M:%S", localtime(one["since"]))
    lines = [
        f"standby {one['name']} ({one['kind']}: {one['preload']})",
        f"  of {one['interpreter']} (Python {one['python']}) in {one['environment']}",
        f"  process {one['pid']} since {since}, {one['threads']} thread, {one['modules']} modules, {memory}",
        f"  served {one['served']}, running {len(one['runs'])}, idle for {one['idle_s']:.0f} s",
    ]
    return [*lines, f"  not for a run from here: other {one['differs']}"] if one["differs"] else lines


def _stop(args: argparse.Namespace) -> int:
    from glowplug.standby.client import control

    found = control.standbys()
    chosen = [one for one in found if args.all or not one.differs]
    stopped = [control.stop(one) for one in chosen]
    lines = [
        f"stopped {one['name']} (process {one['pid']}{', which did not answer' if 'killed' in one else ''})"
        for one in stopped
    ]
    left = sum(one["runs"] for one in stopped)
    lines += [f"{left} runs go on to their end"] if left else []
    others = len(found) - len(chosen)
    lines += [f"{others} of other environments go on: glowplug standby stop --all"] if others else []
    _print(args, {"stopped": stopped, "others": others}, "\n".join(lines) or "no standby runs")
    return 0


def _tell_of_places_passed_over() -> None:
    import sys

    from glowplug.standby import paths

    place = paths.open_place(create=False)
    if place is not None:
        if place.passed_over:
            print(f"glowplug: standby: {place.passed_over}; {place.path} is", file=sys.stderr)
        place.close()


def _print(args: argparse.Namespace, document: dict[str, Any], text: str) -> None:
    from .output import print_json

    if args.json:
        print_json(document)
    else:
        print(text)
