"""Finds what makes a program unfit for a standby before its first line runs. Runs in the child.

Two things are decided earlier in a fresh process than in a forked one: which file `import random` finds, when the
program's own folder has a `random.py`, and the variables that are read while TensorFlow and Keras are imported. Where a
program meddles with either, it gets a plain start. Variables that it sets in a way that is not seen here are caught
when it imports the package (`watch_variables`).
"""

from __future__ import annotations

import os
import re
import sys

from glowplug.core.errors import StandbyError
from glowplug.standby import key
from glowplug.standby.shadowing import hiding

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
_SETS_VARIABLES = re.compile(rb"environ|putenv|setenv")
_VARIABLE = re.compile(rb"['\"]([A-Z][A-Z0-9]*_[A-Z0-9_]+|PYTHON[A-Z]+)['\"]")
_MOST_BYTES = 4 << 20


def objection(kind: str, name: str, withheld: WithheldModules) -> str | None:
    """Return why this program needs a plain start, or None."""
    watch_variables(withheld)
    if kind == "script" and not os.path.isfile(name):
        return "only a file of Python code runs through a standby"
    folder = os.path.dirname(os.path.realpath(name)) if kind == "script" else os.getcwd()
    hidden = hiding(folder, withheld.packages, sys.modules) - {"glowplug"}
    if hidden:
        return f"{', '.join(sorted(hidden))} in the program's folder would be found before what the standby imported"
    variables = _variables(kind, name)
    if variables:
        return f"the program itself sets {', '.join(variables)}, which is read at import"
    return None


def watch_variables(withheld: WithheldModules) -> None:
    """Refuse to hand out a package for which the program has since chosen other settings."""
    at_start = key.environment(os.environ)

    def check() -> None:
        now = key.environment(os.environ)
        changed = [name for name in {*at_start, *now} if at_start.get(name) != now.get(name)]
        if LOG_LEVEL in changed:
            _set_log_level(withheld.folder("tensorflow"), now.get(LOG_LEVEL, ""))
        ours = {name for name, value in withheld.variables.items() if now.get(name) == value}
        late = sorted(name for name in changed if name not in _IGNORED | ours)
        if late:
            raise StandbyError(
                "the program changed variables that the standby has read already",
                seen=", ".join(late),
                remedy="run it with --no-standby, or set them before the run",
            )

    for package in ("tensorflow", "keras"):
        if withheld.holds(package):
            withheld.before_release(package, check)


def _variables(kind: str, name: str) -> list[str]:
    if kind == "code":
        source = name.encode("utf-8", "replace")
    elif kind == "script":
        with open(name, "rb") as stream:
            source = stream.read(_MOST_BYTES)
    else:
        return []
    if not _SETS_VARIABLES.search(source):
        return []
    found = {match.group(1).decode("ascii") for match in _VARIABLE.finditer(source)}
    return sorted(one for one in found if one.startswith(key.PREFIXES) and one not in _IGNORED)


def _set_log_level(folder: str | None, value: str) -> None:
    """Do what TensorFlow does with the variable while it is imported."""
    if folder is not None and value.isdigit():
        import ctypes

        from glowplug.runtime.library import set_log_level

        set_log_level(int(value), ctypes.CDLL(os.path.join(folder, "libtensorflow_framework.so.2")))
