"""`glowplug standby`: start, look at and stop the warm fork servers of this user."""

from __future__ import annotations

import argparse
from typing import Any

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
        "--idle", type=float, metavar="SECONDS", help="for start: end when unused for this long (default: 1800)"
    )


def run(args: argparse.Namespace) -> int:
    """Do what was asked; return the exit code."""
    if args.action == "start":
        return _start(args)
    if args.action == "stop":
        return _stop(args)
    return _status(args)


def _start(args: argparse.Namespace) -> int:
    from glowplug.core.errors import UsageError
    from glowplug.launch.warm import COMPANION, PRELOAD
    from glowplug.standby import control, launch

    kind = args.kind or "python"
    if kind == "native" and args.preload:
        raise UsageError("a native standby has no preload list", seen=args.preload, remedy="leave --preload out")
    if kind == "native":
        from glowplug.loader import remote

        preload, companion = remote.PRELOAD, ""
    else:
        preload, companion = tuple(args.preload.split(",")) if args.preload else PRELOAD, COMPANION
    name = launch.launch(kind, preload, companion, idle_s=args.idle)
    found = control.status(name)
    _print(args, found, f"standby {name} runs: process {found['pid']}, {found['preload']}")
    return 0


def _status(args: argparse.Namespace) -> int:
    from glowplug.core.clock import human_bytes
    from glowplug.standby import control

    found = [control.status(name) for name in control.names()]
    lines = []
    for one in found:
        lines.append(f"standby {one['name']} ({one['kind']}: {one['preload']})")
        lines.append(f"  process {one['pid']}, {one['threads']} thread, {human_bytes(one['memory_bytes'])}")
        lines.append(f"  served {one['served']}, running {len(one['runs'])}, idle for {one['idle_s']:.0f} s")
        lines += [f"  not for a run from here: other {one['differs']}"] if one["differs"] else []
    _print(args, {"standbys": found}, "\n".join(lines) or "no standby runs")
    return 0


def _stop(args: argparse.Namespace) -> int:
    from glowplug.standby import control

    stopped = [control.stop(name) for name in control.names()]
    lines = [f"stopped {one['name']} (process {one['pid']})" for one in stopped]
    left = sum(one["runs"] for one in stopped)
    lines += [f"{left} runs go on to their end"] if left else []
    _print(args, {"stopped": stopped}, "\n".join(lines) or "no standby runs")
    return 0


def _print(args: argparse.Namespace, document: dict[str, Any], text: str) -> None:
    from .output import print_json

    if args.json:
        print_json(document)
    else:
        print(text)
