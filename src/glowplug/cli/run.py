"""`glowplug run`: run a program faster, with no edit to it.

The process becomes the program: it owns standard input and output, its signals and its exit code. What we have to say
goes to stderr, and only when asked (`--explain`) or when something that was asked for could not be done.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from .options import add_program, program_words

if TYPE_CHECKING:
    from glowplug.core.target import Target
    from glowplug.launch.options import Options

NAME = "run"
HELP = "run a script, a module or a piece of code faster, with no edit to it"
EXAMPLE = """
glowplug run train.py --epochs 1
glowplug run --explain -m my.service
glowplug run --no-trace-cache -c 'import tensorflow as tf; print(tf.__version__)'
"""

_OFF = ("0", "false", "no", "off")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's options. Everything after the program belongs to the program."""
    parser.add_argument("--explain", action="store_true", help="say at exit what was applied and what each part gave")
    parser.add_argument("--no-imports", action="store_true", help="import as Python does (GLOWPLUG_IMPORTS=0)")
    parser.add_argument("--no-prefetch", action="store_true", help="read no files ahead (GLOWPLUG_PREFETCH=0)")
    parser.add_argument("--no-trace-cache", action="store_true", help="trace as Keras does (GLOWPLUG_TRACE_CACHE=0)")
    parser.add_argument(
        "--no-children",
        action="store_true",
        help="leave the Python processes that the program starts alone (GLOWPLUG_CHILDREN=0)",
    )
    parser.add_argument(
        "--standby",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="start from the warm standby, and start one if there is none (GLOWPLUG_STANDBY=1), or never do "
        "(GLOWPLUG_STANDBY=0); the default is to use one that runs",
    )
    add_program(parser, "run", "SCRIPT", "the script with its arguments; - reads it from standard input")


def run(args: argparse.Namespace) -> Callable[[], int]:
    """Prepare the program and return the function that becomes it, unless the standby runs it."""
    from glowplug.core.target import target_from_words
    from glowplug.launch.options import Options
    from glowplug.launch.start import start

    target = target_from_words(program_words(args))
    options = Options(
        imports=not args.no_imports and _wanted("GLOWPLUG_IMPORTS"),
        prefetch=not args.no_prefetch and _wanted("GLOWPLUG_PREFETCH"),
        trace_cache=not args.no_trace_cache and _wanted("GLOWPLUG_TRACE_CACHE"),
        children=not args.no_children and _wanted("GLOWPLUG_CHILDREN"),
        explain="json" if args.explain and args.json else "text" if args.explain else "",
    )

    def program() -> int:
        _try_standby(args.standby, target, options)
        start(target, options)
        return 0

    return program


def _wanted(variable: str) -> bool:
    return os.environ.get(variable, "").strip().lower() not in _OFF


def _try_standby(asked: bool | None, target: Target, options: Options) -> None:
    """Run the program in a child of the standby and leave as it left; return where it must start here."""
    if asked is None and os.environ.get("GLOWPLUG_STANDBY", "").strip():
        asked = _wanted("GLOWPLUG_STANDBY")
    if asked is False:
        return
    from glowplug.core.errors import StandbyError
    from glowplug.launch.warm import run_in_standby
    from glowplug.standby.client.foreground import leave

    def tell(note: str) -> None:
        print(f"glowplug: standby: {note}", file=sys.stderr, flush=True)

    curious = bool(asked or options.explain)
    try:
        outcome = run_in_standby(target, options, start=bool(asked), tell=tell if curious else None)
    except StandbyError as error:  # once the program has begun: it is not run a second time
        print(f"glowplug: {error}", file=sys.stderr, flush=True)
        sys.exit(error.exit_code)
    if outcome.code is not None:
        leave(outcome.code)
    if outcome.note and (curious or outcome.unusual):
        tell(outcome.note)
