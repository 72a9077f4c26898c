"""`glowplug profile`: run a program and show where its start went.

The target owns stdout; everything of ours goes to stderr. The exit code is the target's.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from .options import add_program, named_path, program_words
from .profile_outputs import add_output_arguments, check_outputs, write_outputs

if TYPE_CHECKING:
    from glowplug.core.profile import Profile

NAME = "profile"
PROGRAM_OWNS_STDOUT = True
HELP = "run a script, a module or a command and show where its start went"
EXAMPLE = """
glowplug profile train.py --epochs 1
glowplug profile -o start.json --html start.html --repeat 5 -m my.service
glowplug profile --calls train.py
glowplug profile --cold-cache -- gunicorn app:app --check-config
"""

_SIGNALLED = 128


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's options. Everything after the target belongs to the target."""
    parser.add_argument("-o", "--output", type=named_path, metavar="FILE", help="save the profile as JSON")
    add_output_arguments(parser)
    parser.add_argument(
        "--repeat", type=int, default=1, metavar="N", help="run N times; show the median run and the spread"
    )
    parser.add_argument(
        "--cold-cache", action="store_true", help="drop the page cache before each run (root), or evict from it"
    )
    parser.add_argument(
        "--calls",
        action="store_true",
        help="also show which functions of the program's own code took its time; a thread in the program looks",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print the last line of the report alone")
    add_program(parser, "profile", "SCRIPT | -- COMMAND", "the script with its arguments, or any command after --")


def run(args: argparse.Namespace) -> int:
    """Profile the target, print the report, and leave with the target's exit code."""
    from glowplug.core.profile_json import write_profile
    from glowplug.probe.run import profile_target

    document = Path(args.json_file) if args.json_file is not None else None
    check_outputs(args, args.output, document)

    def progress(text: str) -> None:
        print(f"glowplug: {text}", file=sys.stderr, flush=True)

    profile = profile_target(
        program_words(args), repeat=args.repeat, cold_cache=args.cold_cache, calls=args.calls, progress=progress
    )
    profile = _with_findings(profile)
    try:
        for path in (args.output, document):
            if path is not None:
                write_profile(profile, path, force=args.force)
                print(f"wrote {path}", file=sys.stderr)
        write_outputs(profile, args)
    finally:  # what was measured is shown also where it cannot be kept
        if document is None:
            _print(profile, quiet=args.quiet)
    return profile.exit_code if profile.exit_code >= 0 else _SIGNALLED - profile.exit_code


def _with_findings(profile: Profile) -> Profile:
    from glowplug.advise.engine import with_findings

    return with_findings(profile)


def _print(profile: Profile, *, quiet: bool) -> None:
    if quiet:
        from glowplug.report.closing import closing_text

        print(closing_text(profile), file=sys.stderr)
        return
    from glowplug.report.terminal import print_profile

    print_profile(profile, sys.stderr)
