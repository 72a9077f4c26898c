"""What becomes of variables that an installed package sets just before it imports TensorFlow or Keras. In the child.

The program's own text was read before it began (`vetting`); what its libraries do is seen only when it has begun, and
then it cannot be started over. Keras is Python: for other settings of its own it is imported anew, from its files, with
what a plain start would have given. TensorFlow reads which Keras is meant late enough. Anything else is an error: it is
better than settings that silently do not hold.
"""

from __future__ import annotations

import contextlib
import os
import re
from importlib import import_module
from typing import Any

from glowplug.core.errors import StandbyError
from glowplug.standby import key

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
LEGACY_KERAS = "TF_USE_LEGACY_KERAS"  # read again when `tf.keras` is first used
_IGNORED = LATE | {LOG_LEVEL, *key.THREAD_COUNTS}  # the last are read again when numpy is handed out
# Read when a process begins, and never again: a program that sets them sets them for the processes it starts.
_BEFORE = ("PYTHON", "LD_", "MALLOC_", "GLIBC_", "LC_", "LANG")
_OF_KERAS = "KERAS_"
_KNOWN_ROOTS = frozenset({"tensorflow", "keras", "numpy"})  # others may hold what they have imported from Keras


def matters(variable: str) -> bool:
    """Tell whether a program that sets this variable itself could tell that its packages were imported before."""
    return bool(key.environment({variable: ""})) and variable not in _IGNORED and not variable.startswith(_BEFORE)


def in_use(variable: str, withheld: WithheldModules) -> str | None:
    """Return the value of a variable that what was imported ahead goes by."""
    if variable == "KERAS_BACKEND" and (settled := withheld.peek("keras.src.backend.config")) is not None:
        return str(settled._BACKEND)  # by this variable, by a file, or by default
    return os.environ.get(variable)


def watch_variables(withheld: WithheldModules) -> None:
    """Look again, when TensorFlow or Keras is asked for, at the variables that they read."""
    at_start = key.environment(os.environ)
    settled = {"KERAS_BACKEND": in_use("KERAS_BACKEND", withheld)}

    def check() -> None:
        now = key.environment(os.environ)
        changed = [name for name in {*at_start, *now} if at_start.get(name) != now.get(name)]
        if LOG_LEVEL in changed:
            _set_log_level(withheld.folder("tensorflow"), now.get(LOG_LEVEL, ""))
        ours = {name for name, value in withheld.variables.items() if now.get(name) == value}
        ours |= {name for name, value in settled.items() if value is not None and now.get(name) == value}
        late = {name for name in changed if matters(name) and name not in ours}
        _follow(late, withheld)

    for package in ("tensorflow", "keras"):
        if withheld.holds(package):
            withheld.before_release(package, check)


def _follow(late: set[str], withheld: WithheldModules) -> None:
    """Make what is about to be handed out what these variables ask for, or refuse to hand it out."""
    of_keras = {name for name in late if name.startswith(_OF_KERAS)}
    rest = late - of_keras - {LEGACY_KERAS}
    if rest or (of_keras and not withheld.roots <= _KNOWN_ROOTS):
        raise StandbyError(
            "the program changed variables that the standby has read already",
            seen=", ".join(sorted(late)),
            remedy="run it with --no-standby, or set them before the run",
        )
    if of_keras and withheld.holds("keras"):
        withheld.forget("keras")
        withheld.after_release("tensorflow", lambda: _import_if_there("keras.src.optimizers"))  # as TensorFlow does
    if LEGACY_KERAS in late and withheld.holds("tensorflow"):
        withheld.after_release("tensorflow", _choose_keras)


def _choose_keras() -> None:
    """Repeat the lines of `tensorflow/__init__.py` that go by the variable; `tf.keras` itself looks when it is used."""
    tensorflow: Any = import_module("tensorflow")
    legacy = os.environ.get(LEGACY_KERAS) in ("true", "True", "1")
    wanted, other = "tf_keras.api._v2.keras", "keras.api._v2.keras"
    if not legacy:
        wanted, other = other, wanted
    folder_of = import_module("tensorflow.python.tools.module_util").get_parent_dir_for_name
    if list(tensorflow.__path__[:1]) == [folder_of(other)]:
        tensorflow.__path__ = [folder_of(wanted), *tensorflow.__path__[1:]]
    if hasattr(tensorflow, "_tf_uses_legacy_keras"):
        tensorflow._tf_uses_legacy_keras = legacy
    _import_if_there(f"{'tf_keras' if legacy else 'keras'}.src.optimizers")


def _import_if_there(name: str) -> None:
    with contextlib.suppress(ImportError, AttributeError):  # TensorFlow passes over the same
        import_module(name)


def _set_log_level(folder: str | None, value: str) -> None:
    """Do what TensorFlow does with the variable while it is imported: what is no number is zero."""
    if folder is not None:
        import ctypes

        from glowplug.runtime.library import set_log_level

        number = int(value) if re.fullmatch(r"[ \t\n]*[+-]?[0-9]+[ \t\n]*", value) else 0
        level = number if -(1 << 31) <= number < 1 << 31 else 0
        set_log_level(level, ctypes.CDLL(os.path.join(folder, "libtensorflow_framework.so.2")))
