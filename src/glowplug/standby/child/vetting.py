"""Finds what makes a program unfit for a standby before its first line runs. Runs in the child.

Two things are decided earlier in a fresh process than in a forked one: which file `import random` finds, when the
program's own folder has a `random.py`, and the variables that are read while TensorFlow and Keras are imported. Where a
program, or a module beside it, meddles with either, it gets a plain start, unless it sets what is in use anyway.
What an installed package sets is met when the program then imports TensorFlow (`late_variables`).
"""

from __future__ import annotations

import os
import sys

from glowplug.standby.shadowing import hiding

from .late_variables import in_use, matters, watch_variables
from .variables import UnclearError, settings
from .withheld import WithheldModules

_MOST_BYTES = 4 << 20


def objection(kind: str, name: str, withheld: WithheldModules) -> str | None:
    """Return why this program needs a plain start, or None."""
    watch_variables(withheld)
    if kind == "script" and not os.path.isfile(name):
        return "only a file of Python code runs through a standby"
    if kind == "stdin":
        return "a program that comes through standard input cannot be looked at first"
    folder = os.path.dirname(os.path.realpath(name)) if kind == "script" else os.getcwd()
    hidden = hiding(folder, withheld.packages, sys.modules) - {"glowplug"}
    if hidden:
        return f"{', '.join(sorted(hidden))} in the program's folder would be found before what the standby imported"
    try:
        found = settings(_source(kind, name), folder)
    except UnclearError as error:
        return f"the program may set variables that are read at import: {error}"
    late = sorted({one.name for one in found if matters(one.name) and one.value != in_use(one.name, withheld)})
    if late:
        return f"the program itself sets {', '.join(late)}, which is read at import"
    return None


def _source(kind: str, name: str) -> bytes:
    """Return the program's text; for a module, one that imports it."""
    if kind == "code":
        return name.encode("utf-8", "replace")
    if kind == "script":
        with open(name, "rb") as stream:
            return stream.read(_MOST_BYTES)
    return f"import {name}, {name}.__main__".encode()
