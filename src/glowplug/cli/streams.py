"""Standard streams that a verb can use, whatever it was started with.

A process may be started with a stream closed. Then the next file that is opened takes the stream's number, and what
TensorFlow's library writes to standard error lands in a model; and Python's own stream is None, on which nothing can
be printed. A name need not be text in the encoding of the terminal: it is printed with escapes.
"""

from __future__ import annotations

import io
import os
import sys

_NUMBERS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


def make_usable(*, inherited: bool) -> None:
    """Open what is closed on the null device, and let names of every kind be printed.

    Our own children get what was opened where `inherited` says so; a program of the user's finds it closed.
    """
    for number, (name, mode) in enumerate(_NUMBERS):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), inherited)  # the lowest number that is free: this one
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123 - for the process
        elif mode == "w" and isinstance(stream, io.TextIOWrapper) and _refuses_names(stream):
            stream.reconfigure(errors="backslashreplace")


def _refuses_names(stream: io.TextIOWrapper) -> bool:
    kept_as_it_is = stream.errors == "surrogateescape" and stream.encoding.lower().replace("-", "") == "utf8"
    return stream.errors != "backslashreplace" and not kept_as_it_is
