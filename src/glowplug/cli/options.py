"""Options that several verbs share."""

from __future__ import annotations

import argparse
from collections.abc import Sequence


def count(text: str) -> int:
    """Read a number from zero on."""
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError("it cannot be negative")
    return value


class VerbParser(argparse.ArgumentParser):
    """Reads the options of a verb. Where the verb takes a program, all words from the program on are the program's."""

    takes_program = False

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Read our own options alone: argparse would take some of the program's words for ours, and drop others."""
        if not self.takes_program or args is None:
            return super().parse_known_args(args, namespace)
        at = self._first_of_program(list(args))
        found, left = super().parse_known_args(args[:at], namespace)
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
