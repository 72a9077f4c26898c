"""The command `glowplug`: finds the verb, runs it, and prints what went wrong in one line.

A verb is a module of this folder with `NAME`, `HELP` (one line), `EXAMPLE` (command lines for its help),
`add_arguments(parser)` and `run(args) -> int`. Only the chosen verb's module is imported, and it imports what is heavy
inside `run`, so that `glowplug --help` starts at once. This is the one place that prints errors and turns them into
exit codes. A verb whose process becomes the user's program returns a function instead of a code: it is called once the
handlers of this module are gone, and what it raises is the program's own affair. Such a verb may have
`run_plain(words)`, which takes a plain command line without a parser, or returns None. A verb with
`PROGRAM_OWNS_STDOUT` has `--json-file FILE` in the place of `--json`: stdout is the program's.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

from glowplug.core.errors import GlowplugError

TYPE_CHECKING = False  # type checkers take it for true; `glowplug run` is the program's start, and typing costs 5 ms
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence
    from typing import NoReturn

# name -> (module, the module's HELP)
VERBS = {
    "profile": ("glowplug.cli.profile", "run a script, a module or a command and show where its start went"),
    "run": ("glowplug.cli.run", "run a script, a module or a piece of code faster, with no edit to it"),
    "report": ("glowplug.cli.report", "render a saved profile: terminal, HTML, Perfetto trace, speedscope, JSON"),
    "compare": ("glowplug.cli.compare", "compare two saved profiles by phase, with noise taken into account"),
    "budget": ("glowplug.cli.budget", "fail when a saved profile is over its limits"),
    "explain": (
        "glowplug.cli.explain",
        "show the page of a rule: its symptom, the reason, the remedy, how the saving is estimated",
    ),
    "pack": (
        "glowplug.cli.pack",
        "turn a SavedModel, .keras, .h5 or .tflite model into a bundle, outputs proven equal",
    ),
    "push": ("glowplug.cli.push", "store a bundle under a URL: only what the storage does not have is sent"),
    "pull": ("glowplug.cli.pull", "fetch what a URL names into this host's node cache, or into a directory"),
    "inspect": ("glowplug.cli.inspect", "show what a bundle holds"),
    "verify": ("glowplug.cli.verify", "check every byte of a bundle"),
    "predict": ("glowplug.cli.predict", "call a bundle once, and say how long it took"),
    "bench": (
        "glowplug.cli.bench",
        "measure a model in stock TensorFlow, its peers and every engine, in fresh processes",
    ),
    "standby": ("glowplug.cli.standby", "start, look at or stop the warm standby that runs begin from"),
    "serve": ("glowplug.cli.serve", "serve bundles and SavedModels over TensorFlow Serving's REST and gRPC API"),
    "cluster": (
        "glowplug.cli.cluster",
        "models on the nodes of a Ray cluster: fetched about once, served, changed, gone back from",
    ),
    "cache": (
        "glowplug.cli.cache",
        "look into the trace cache and the node cache, explain, check, make them smaller, or take traces elsewhere",
    ),
    "keygen": ("glowplug.cli.keygen", "make a pair of keys: one signs what is pushed, the other is trusted"),
    "demo": ("glowplug.cli.demo", "a tour: stock TensorFlow against Glowplug on a model it builds itself"),
    "complete": (
        "glowplug.cli.complete",
        "print a script that completes glowplug's command line in bash, zsh or fish",
    ),
    "doctor": ("glowplug.cli.doctor", "say what this machine can and cannot do"),
}

EXIT_CODES = """\
exit codes: 0 good, 1 a check failed, 2 usage, 3 bad model, bundle or input, 4 storage, 5 runtime"""

_STORAGE, _UNEXPECTED, _INTERRUPTED, _TERMINATED, _PIPE_CLOSED = 4, 5, 130, 143, 141
_DEBUG = "GLOWPLUG_DEBUG"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code. A usage error leaves through `SystemExit(2)`, as argparse does."""
    outcome = _run_verb(sys.argv[1:] if argv is None else list(argv))
    return outcome() if callable(outcome) else outcome


def _run_verb(arguments: list[str]) -> int | Callable[[], int]:
    try:
        return _run_plainly(arguments) or _parse_and_run(arguments)
    except GlowplugError as error:
        return _fail(error, str(error), error.exit_code)
    except KeyboardInterrupt:
        return _fail(None, "interrupted", _INTERRUPTED)
    except BrokenPipeError:
        _give_up_stdout()
        return _PIPE_CLOSED
    except OSError as error:
        from glowplug.core.disk.refusals import remedy

        if error.filename is None:  # of the files that verbs open each has its name: this is a stream
            _give_up_stdout()
        seen = "" if error.filename is None else f": {os.fsdecode(error.filename)}"
        return _fail(error, f"{error.strerror or error}{seen}; {remedy(error)}", _STORAGE)
    except Exception as error:  # the process boundary: everything else is a defect of ours
        hint = "" if os.environ.get(_DEBUG) else f"; set {_DEBUG}=1 for the traceback"
        return _fail(error, f"unexpected {type(error).__name__}: {error}{hint}", _UNEXPECTED)


def _run_plainly(arguments: list[str]) -> Callable[[], int] | None:
    if arguments[:1] != ["run"]:
        return None
    from .run import run_plain

    return run_plain(arguments[1:])


def _parse_and_run(arguments: list[str]) -> int | Callable[[], int]:
    import signal

    if arguments[:1] != ["run"]:  # whose process becomes the user's program, which finds its streams as they were
        from .streams import make_usable

        make_usable(inherited=arguments[:1] != ["profile"])
    previous = signal.signal(signal.SIGTERM, _terminated)
    try:
        parser = build_parser(arguments)
        args = parser.parse_args(arguments)
        if args.verb is None:
            parser.print_help()
            return 2
        outcome: int | Callable[[], int] = args.run(args)
        if sys.stdout is not None and not callable(outcome):
            sys.stdout.flush()  # here, so that a closed pipe is met by the caller and not at interpreter exit
        return outcome
    finally:
        signal.signal(signal.SIGTERM, previous)


def build_parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser, with the options of the one verb that `arguments` names."""
    import argparse

    from glowplug.core.version import VERSION

    from .options import OneLineParser, VerbParser, add_json

    parser = OneLineParser(
        prog="glowplug",
        description="Measures, explains and removes the cold start of TensorFlow.",
        epilog=f"`glowplug VERB --help` explains a verb and shows an example.\n{EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"glowplug {VERSION}")
    parser.set_defaults(verb=None)
    # With a program name of its own, since argparse would import `shutil` to make one up.
    verbs = parser.add_subparsers(metavar="VERB", title="verbs", prog="glowplug", parser_class=VerbParser)
    chosen = arguments[0] if arguments and arguments[0] in VERBS else None
    for name, (module_name, help_line) in VERBS.items():
        if chosen is None:
            verbs.add_parser(name, help=help_line)
        if name != chosen:
            continue
        module = import_module(module_name)
        verb = verbs.add_parser(
            name,
            help=help_line,
            description=f"{module.HELP[0].upper()}{module.HELP[1:]}.",
            epilog=f"example:\n{_indented(module.EXAMPLE)}\n\n{EXIT_CODES}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(verb)
        add_json(verb, program_owns_stdout=getattr(module, "PROGRAM_OWNS_STDOUT", False))
        verb.set_defaults(verb=name, run=module.run)
    return parser


def _give_up_stdout() -> None:
    """Forget what could not be written: the interpreter would try again at its end, and complain."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(error: BaseException | None, message: str, code: int) -> int:
    if error is not None and os.environ.get(_DEBUG):
        import traceback

        traceback.print_exception(error)
    if sys.stderr is not None:  # or it would be printed on stdout
        import contextlib

        with contextlib.suppress(OSError):  # nobody can read it: the exit code is left
            print(f"glowplug: {' '.join(message.split())}", file=sys.stderr)
    return code


def _terminated(number: int, frame: object) -> NoReturn:
    """Leave through the ordinary way out, so that half-written outputs are removed."""
    sys.exit(_TERMINATED)


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.strip().splitlines())
