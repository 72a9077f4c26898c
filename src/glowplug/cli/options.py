"""Options that several verbs share."""

from __future__ import annotations

import argparse
import difflib
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from glowplug.store.signature import Trust


def count(text: str) -> int:
    """Read a number from zero on."""
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError("it cannot be negative")
    return value


def span(text: str) -> float:
    """Read a length of time from zero on, in whatever unit the option has."""
    value = float(text)
    if not (math.isfinite(value) and value >= 0):
        raise argparse.ArgumentTypeError(f"a number from 0 on is needed, not {text!r}")
    return value


def named_path(text: str) -> Path:
    """Read the path of a file or folder to write. An empty one would be the folder that we are in."""
    if not text:
        raise argparse.ArgumentTypeError("it needs a name: this one is empty")
    return Path(text)


class OneLineParser(argparse.ArgumentParser):
    """Says what is wrong with a command line in one line, as every other error is said."""

    def error(self, message: str) -> NoReturn:
        """Print it and leave with 2. What was misspelt is set against what there is."""
        found = re.match(r"argument ([^:]+): invalid choice: '([^']*)'|unrecognized arguments: (\S+)", message)
        wrong = (found[3] if found[2] is None else found[2]) if found else None
        if found and found[2] is not None and found[1] == "VERB":
            message = f"there is no verb {wrong!r}"
        near = difflib.get_close_matches(wrong or "", self._known_words(found[1] if found else None), n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        self.exit(2, f"{self.prog}: {' '.join(message.split())}{hint}; see {self.prog} --help\n")

    def _known_words(self, argument: str | None) -> list[str]:
        """Return what could have been meant: one of the choices of an argument, or any option."""
        if argument is None:
            return list(self._option_string_actions)
        return [
            str(choice)
            for action in self._actions
            if argument in (action.metavar, action.dest, "/".join(action.option_strings))
            for choice in action.choices or ()
        ]


class ElsewhereAction(argparse.Action):
    """An option that cannot be: it says which one to use."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: object, option: str | None = None
    ) -> NoReturn:
        """Leave with one line."""
        parser.error(f"stdout is the program's: name a file for the document with {self.const}")


def add_json(parser: argparse.ArgumentParser, *, program_owns_stdout: bool) -> None:
    """Declare `--json`, or `--json-file` where stdout belongs to the program that is run."""
    if not program_owns_stdout:
        parser.add_argument("--json", action="store_true", help="print one JSON document on stdout")
        return
    parser.add_argument("--json-file", metavar="FILE", help="write one JSON document to FILE: stdout is the program's")
    # Declared, since argparse would take it for an abbreviation, and the program for the file.
    parser.add_argument(
        "--json", action=ElsewhereAction, nargs=0, const="--json-file FILE", default=False, help=argparse.SUPPRESS
    )


class VerbParser(OneLineParser):
    """Reads the options of a verb. Where the verb takes a program, all words from the program on are the program's."""

    takes_program = False

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Read our own options alone: argparse would take some of the program's words for ours, and drop others."""
        if not self.takes_program or args is None:
            found, left = super().parse_known_args(args, namespace)
            if left:  # said here, where the options of the verb are known
                self.error(f"unrecognized arguments: {' '.join(left)}")
            return found, left
        at = self._first_of_program(list(args))
        found, left = super().parse_known_args(args[:at], namespace)
        if left:
            self.error(f"unrecognized arguments: {' '.join(left)}")
        found.program = list(args[at:])
        return found, left

    def _first_of_program(self, words: list[str]) -> int:
        at = 0
        while at < len(words):
            word = words[at]
            if word in ("-", "--") or not word.startswith("-") or word[:2] in ("-m", "-c"):
                break
            name, equals, _ = word.partition("=")
            options = {one for one in self._option_string_actions if one == name or one.startswith(name)}
            action = self._option_string_actions[name if name in options else min(options, default="-h")]
            at += 1 if equals or action.nargs == 0 or (len(word) > 2 and word[1] != "-") else 2
        return min(at, len(words))


def add_program(parser: argparse.ArgumentParser, doing: str, metavar: str, help_text: str) -> None:
    """Declare a program as Python takes one: a script, `-m` or `-c`. Everything after it belongs to it."""
    assert isinstance(parser, VerbParser)
    parser.takes_program = True
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, metavar="MODULE", help=f"{doing} a module")
    parser.add_argument("-c", dest="code", nargs=argparse.REMAINDER, metavar="CODE", help=f"{doing} a piece of code")
    parser.add_argument("target", nargs=argparse.REMAINDER, metavar=metavar, help=help_text)


def program_words(args: argparse.Namespace) -> list[str]:
    """Return the program and its arguments as they stood on the command line."""
    words: list[str] = args.program
    if words and words[0][:2] in ("-m", "-c") and len(words[0]) > 2:  # as Python takes them
        return [words[0][:2], words[0][2:], *words[1:]]
    return words


def add_op_library(parser: argparse.ArgumentParser) -> None:
    """Declare `--op-library`."""
    parser.add_argument(
        "--op-library",
        metavar="PACKAGE",
        action="append",
        default=[],
        help="an installed package of custom operations that the model needs (repeatable)",
    )


def add_trusted_keys(parser: argparse.ArgumentParser, *more_names: str) -> None:
    """Declare what says whose signatures count for something that comes from a URL."""
    parser.add_argument(
        *more_names,
        "--trust-key",
        dest="trust_key",
        metavar="KEY",
        action="append",
        default=[],
        help="from a URL, take only what this public key signed (repeatable)",
    )
    parser.add_argument("--require-signature", action="store_true", help="from a URL, take only what is signed")


def trusted_keys(args: argparse.Namespace) -> Trust | None:
    """Return whose signatures count, by these options; None where only the environment says so."""
    if not args.trust_key and not args.require_signature:
        return None
    from glowplug.store.signature import trust

    return trust(args.trust_key, required=args.require_signature)
