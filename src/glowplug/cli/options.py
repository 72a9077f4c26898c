"""Options that several verbs share."""

from __future__ import annotations

import argparse


def count(text: str) -> int:
    """Read a number from zero on."""
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError("it cannot be negative")
    return value


def add_program(parser: argparse.ArgumentParser, doing: str, metavar: str, help_text: str) -> None:
    """Declare a program as Python takes one: a script, `-m` or `-c`. Everything after it belongs to it."""
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, metavar="MODULE", help=f"{doing} a module")
    parser.add_argument("-c", dest="code", nargs=argparse.REMAINDER, metavar="CODE", help=f"{doing} a piece of code")
    parser.add_argument("target", nargs=argparse.REMAINDER, metavar=metavar, help=help_text)


def program_words(args: argparse.Namespace) -> list[str]:
    """Return the program and its arguments as they stood on the command line."""
    if args.module is not None:
        return ["-m", *args.module]
    if args.code is not None:
        return ["-c", *args.code]
    return list(args.target)


def add_op_library(parser: argparse.ArgumentParser) -> None:
    """Declare `--op-library`."""
    parser.add_argument(
        "--op-library",
        metavar="PACKAGE",
        action="append",
        default=[],
        help="an installed package of custom operations that the model needs (repeatable)",
    )
