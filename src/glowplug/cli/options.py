"""Options that several verbs share."""

from __future__ import annotations

import argparse


def count(text: str) -> int:
    """Read a number from zero on."""
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError("it cannot be negative")
    return value


def add_op_library(parser: argparse.ArgumentParser) -> None:
    """Declare `--op-library`."""
    parser.add_argument(
        "--op-library",
        metavar="PACKAGE",
        action="append",
        default=[],
        help="an installed package of custom operations that the model needs (repeatable)",
    )
