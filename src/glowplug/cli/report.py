"""`glowplug report`: render a saved profile again, on the terminal, as HTML, as a Chrome trace or as JSON."""

from __future__ import annotations

import argparse
from pathlib import Path

from .profile_outputs import add_output_arguments, check_outputs, write_outputs

NAME = "report"
HELP = "render a saved profile: terminal, HTML, Perfetto trace, speedscope, JSON"
EXAMPLE = "glowplug report start.json --html start.html"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what `report` takes."""
    parser.add_argument("profile", type=Path, metavar="PROFILE", help="a file that `glowplug profile -o` wrote")
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Write the files that were asked for; with none, print the report."""
    import sys

    from glowplug.core.profile_json import encode, read_profile

    check_outputs(args, read=[args.profile])
    profile = read_profile(args.profile)
    write_outputs(profile, args)
    if args.json:
        import json

        print(json.dumps(encode(profile), separators=(",", ":"), allow_nan=False))
    elif args.html is None and args.trace is None and args.speedscope is None:
        from glowplug.report.terminal import print_profile

        print_profile(profile, sys.stdout)
    return 0
