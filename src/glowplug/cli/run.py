"""`glowplug run`: run a program faster, with no edit to it.

The process becomes the program: it owns standard input and output, its signals and its exit code. What we have to say
goes to stderr, and only when asked (`--explain`) or when something that was asked for could not be done.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # as in `main`
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence
    from typing import Any

    from glowplug.core.target import Target
    from glowplug.launch.options import Options

NAME = "run"
PROGRAM_OWNS_STDOUT = True
HELP = "run a script, a module or a piece of code faster, with no edit to it"
EXAMPLE = """
glowplug run train.py --epochs 1
glowplug run --explain -m my.service
glowplug run --no-trace-cache -c 'import tensorflow as tf; print(tf.__version__)'
"""

# What `run_plain` takes: the switches below as they are written, and the values that they give.
_SWITCHES: dict[str, tuple[str, bool]] = {
    "--explain": ("explain", True),
    "--no-children": ("no_children", True),
    "--no-imports": ("no_imports", True),
    "--no-prefetch": ("no_prefetch", True),
    "--no-standby": ("standby", False),
    "--no-trace-cache": ("no_trace_cache", True),
    "--standby": ("standby", True),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's options. Everything after the program belongs to the program."""
    import argparse

    from .options import add_program

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
    from .options import program_words

    chosen = {name: getattr(args, name) for name, _ in _SWITCHES.values()}
    return _prepare(program_words(args), json_file=args.json_file, **chosen)


def run_plain(words: Sequence[str]) -> Callable[[], int] | None:
    """Do what `run` does for a command line of switches and a program, without argparse; None for any other.

    Importing argparse and making the parser would cost each start 15 ms.
    """
    count = next((at for at, word in enumerate(words) if word not in _SWITCHES), len(words))
    program = list(words[count:])
    if not program or (program[0].startswith("-") and program[0] not in ("-m", "-c", "-")):
        return None
    chosen: dict[str, Any] = dict(_SWITCHES[word] for word in words[:count])
    return _prepare(program, **chosen)


def _prepare(
    words: Sequence[str],
    *,
    explain: bool = False,
    json_file: str | None = None,
    no_children: bool = False,
    no_imports: bool = False,
    no_prefetch: bool = False,
    no_trace_cache: bool = False,
    standby: bool | None = None,
) -> Callable[[], int]:
    from glowplug.core.switches import is_on
    from glowplug.core.target import target_from_words
    from glowplug.launch.options import Options
    from glowplug.launch.start import start

    target = target_from_words(words)
    options = Options(
        imports=not no_imports and is_on("GLOWPLUG_IMPORTS"),
        prefetch=not no_prefetch and is_on("GLOWPLUG_PREFETCH"),
        trace_cache=not no_trace_cache and is_on("GLOWPLUG_TRACE_CACHE"),
        children=not no_children and is_on("GLOWPLUG_CHILDREN"),
        explain="json" if json_file is not None else "text" if explain else "",
    )
    if json_file is not None:
        _tell_in(json_file)

    def program() -> int:
        _try_standby(standby, target, options)
        start(target, options)
        return 0

    return program


def _tell_in(path: str) -> None:
    """Have what was applied written to a file at exit. It is made now: where that fails, the program does not start."""
    from glowplug.launch.options import EXPLAIN_FILE

    with open(path, "xb"):  # noqa: PTH123 - on the way of a start, which need not import pathlib
        pass
    os.environ[EXPLAIN_FILE] = os.path.abspath(path)  # noqa: PTH100 - as above


def _try_standby(asked: bool | None, target: Target, options: Options) -> None:
    """Run the program in a child of the standby and leave as it left; return where it must start here."""
    from glowplug.core.switches import is_on

    if asked is None and os.environ.get("GLOWPLUG_STANDBY", "").strip():
        asked = is_on("GLOWPLUG_STANDBY")
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
