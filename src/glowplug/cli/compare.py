"""`glowplug compare`: before against after, by phase, with noise taken into account."""

from __future__ import annotations

import argparse
from pathlib import Path

from .options import named_path
from .profile_outputs import check_page, refuse_shared

NAME = "compare"
HELP = "compare two saved profiles by phase, with noise taken into account"
EXAMPLE = """
glowplug compare before.json after.json
glowplug compare before.json after.json --html change.html
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what `compare` takes."""
    parser.add_argument("before", type=Path, metavar="BEFORE", help="a file that `glowplug profile -o` wrote")
    parser.add_argument("after", type=Path, metavar="AFTER", help="the same program, profiled later")
    parser.add_argument(
        "--html", type=named_path, metavar="FILE", help="write the comparison as a self-contained HTML page"
    )
    parser.add_argument("--force", action="store_true", help="replace a file that exists")
    parser.add_argument("--fail-slower", action="store_true", help="exit 1 when the total is slower beyond noise")


def run(args: argparse.Namespace) -> int:
    """Print the comparison, or write its page. Exit 1 only where `--fail-slower` asks for it."""
    import sys

    from glowplug.core.profile_json import read_profile
    from glowplug.report.compare import compare, encode_comparison

    refuse_shared(args.html, read=[args.before, args.after])
    check_page(args.html, force=args.force)
    before, after = read_profile(args.before), read_profile(args.after)
    comparison = compare(before, after)
    if args.html is not None:
        from glowplug.core.disk.files import write_file
        from glowplug.report.comparison_html import render_comparison

        write_file(args.html, render_comparison(comparison, before, after), force=args.force, mode=0o600)
        print(f"wrote {args.html}", file=sys.stderr)
    if args.json:
        import json

        print(json.dumps(encode_comparison(comparison), indent=2))
    elif args.html is None:
        from glowplug.report.comparison import comparison_lines
        from glowplug.report.terminal import print_lines

        print_lines(comparison_lines(comparison, 80), sys.stdout)
    return 1 if args.fail_slower and comparison.slower else 0
