"""`glowplug compare`: before against after, by phase, with noise taken into account."""

from __future__ import annotations

import argparse
from pathlib import Path

NAME = "compare"
HELP = "compare two saved profiles by phase, with noise taken into account"
EXAMPLE = "glowplug compare before.json after.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what `compare` takes."""
    parser.add_argument("before", type=Path, metavar="BEFORE", help="a file that `glowplug profile -o` wrote")
    parser.add_argument("after", type=Path, metavar="AFTER", help="the same program, profiled later")
    parser.add_argument("--fail-slower", action="store_true", help="exit 1 when the total is slower beyond noise")


def run(args: argparse.Namespace) -> int:
    """Print the comparison. Exit 1 only where `--fail-slower` asks for it."""
    import sys

    from glowplug.core.profile_json import read_profile
    from glowplug.report.compare import compare, encode_comparison

    comparison = compare(read_profile(args.before), read_profile(args.after))
    if args.json:
        import json

        print(json.dumps(encode_comparison(comparison), indent=2))
    else:
        from glowplug.report.comparison import comparison_lines
        from glowplug.report.terminal import print_lines

        print_lines(comparison_lines(comparison, 80), sys.stdout)
    return 1 if args.fail_slower and comparison.slower else 0
