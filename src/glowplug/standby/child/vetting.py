"""Finds what makes a program unfit for a standby before its first line runs. Runs in the child.

Two things are decided earlier in a fresh process than in a forked one: which file `import random` finds, when the
program's own folder has a `random.py`, and the variables that are read while TensorFlow and Keras are imported. Where a
program, or a module beside it, meddles with either, it gets a plain start, unless it sets what is in use anyway.
Variables that an installed package sets are caught when the program then imports TensorFlow (`watch_variables`).
"""

from __future__ import annotations

import os
import re
import sys

from glowplug.core.errors import StandbyError
from glowplug.standby import key
from glowplug.standby.shadowing import hiding

from .variables import UnclearError, settings
from .withheld import WithheldModules

# Read when a device or the runtime is made, which is after the fork.
LATE = frozenset(
    {
        "TF_XLA_FLAGS",
        "XLA_FLAGS",
        "TF_CONFIG",
        "CUDA_VISIBLE_DEVICES",
        "TF_FORCE_GPU_ALLOW_GROWTH",
        "TF_GPU_ALLOCATOR",
        "TF_GPU_THREAD_MODE",
        "TF_GPU_THREAD_COUNT",
        "TF_NUM_INTEROP_THREADS",
        "TF_NUM_INTRAOP_THREADS",
        "TF_DETERMINISTIC_OPS",
        "TF_CUDNN_DETERMINISTIC",
    }
)
LOG_LEVEL = "TF_CPP_MIN_LOG_LEVEL"  # applied again
_IGNORED = LATE | {LOG_LEVEL, *key.THREAD_COUNTS}  # the last are read again when numpy is handed out
# Read when a process begins, and never again: a program that sets them sets them for the processes it starts.
_BEFORE = ("PYTHON", "LD_", "MALLOC_", "GLIBC_", "LC_", "LANG")
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
    late = sorted({one.name for one in found if _matters(one.name) and one.value != in_use(one.name, withheld)})
    if late:
        return f"the program itself sets {', '.join(late)}, which is read at import"
    return None


def in_use(variable: str, withheld: WithheldModules) -> str | None:
    """Return the value of a variable that what was imported ahead goes by."""
    if variable == "KERAS_BACKEND" and (settled := withheld.peek("keras.src.backend.config")) is not None:
        return str(settled._BACKEND)  # by this variable, by a file, or by default
    return os.environ.get(variable)


def watch_variables(withheld: WithheldModules) -> None:
    """Refuse to hand out a package for which the program has since chosen other settings."""
    at_start = key.environment(os.environ)
    settled = {"KERAS_BACKEND": in_use("KERAS_BACKEND", withheld)}

    def check() -> None:
        now = key.environment(os.environ)
        changed = [name for name in {*at_start, *now} if at_start.get(name) != now.get(name)]
        if LOG_LEVEL in changed:
            _set_log_level(withheld.folder("tensorflow"), now.get(LOG_LEVEL, ""))
        ours = {name for name, value in withheld.variables.items() if now.get(name) == value}
        ours |= {name for name, value in settled.items() if value is not None and now.get(name) == value}
        late = sorted(name for name in changed if _matters(name) and name not in ours)
        if late:
            raise StandbyError(
                "the program changed variables that the standby has read already",
                seen=", ".join(late),
                remedy="run it with --no-standby, or set them before the run",
            )

    for package in ("tensorflow", "keras"):
        if withheld.holds(package):
            withheld.before_release(package, check)


def _matters(variable: str) -> bool:
    """Tell whether a program that sets this variable itself could tell that its packages were imported before."""
    return bool(key.environment({variable: ""})) and variable not in _IGNORED and not variable.startswith(_BEFORE)


def _source(kind: str, name: str) -> bytes:
    """Return the program's text; for a module, one that imports it."""
    if kind == "code":
        return name.encode("utf-8", "replace")
    if kind == "script":
        with open(name, "rb") as stream:
            return stream.read(_MOST_BYTES)
    return f"import {name}, {name}.__main__".encode()


def _set_log_level(folder: str | None, value: str) -> None:
    """Do what TensorFlow does with the variable while it is imported: what is no number is zero."""
    if folder is not None:
        import ctypes

        from glowplug.runtime.library import set_log_level

        number = int(value) if re.fullmatch(r"[ \t\n]*[+-]?[0-9]+[ \t\n]*", value) else 0
        level = number if -(1 << 31) <= number < 1 << 31 else 0
        set_log_level(level, ctypes.CDLL(os.path.join(folder, "libtensorflow_framework.so.2")))
