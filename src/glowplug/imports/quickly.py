"""Imports TensorFlow or Keras in this process as `glowplug run` would, for code of ours that needs it first."""

from __future__ import annotations

import atexit
import sys
from importlib import import_module

from glowplug.core.switches import is_on

_LIBRARIES = ("tensorflow", "keras")


def import_quickly(name: str) -> None:
    """Import a library, and TensorFlow with it: faster, unless that has begun, is off, or is seen to already."""
    if not (any(map(sys.modules.__contains__, _LIBRARIES)) or _is_seen_to()) and is_on("GLOWPLUG_IMPORTS"):
        _accelerate()
    import_module(name)


def _is_seen_to() -> bool:
    """Whether `run` has this process accelerated, or a standby has lent it what is imported."""
    return any(type(finder).__module__.partition(".")[0] == "glowplug" for finder in sys.meta_path)


def _accelerate() -> None:
    from .accelerate import Acceleration
    from .ledger import Ledger
    from .watch import Watcher

    watcher = Watcher()
    acceleration = Acceleration(watcher, Ledger(), meanwhile=lambda: None)
    watcher.install()
    atexit.register(acceleration.finish)
