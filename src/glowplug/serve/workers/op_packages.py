"""Packages of operations that need no flag, where they are installed: those that TensorFlow Serving has built in."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Sequence

from glowplug.core.errors import GlowplugError

BUILT_IN = ("tensorflow_text",)
OPERATIONS_OF = "uses operations of "  # a worker's note about what it had to load; packing needs it too

_MISSING = re.compile("Op type not registered '")


def installed(packages: Sequence[str] = BUILT_IN) -> tuple[str, ...]:
    """Return those of the packages that are there."""
    return tuple(name for name in packages if importlib.util.find_spec(name) is not None)


def noted(notes: Sequence[str]) -> tuple[str, ...]:
    """Return the packages that a worker's notes speak of."""
    return tuple(
        name for note in notes if note.startswith(OPERATIONS_OF) for name in note.removeprefix(OPERATIONS_OF).split(",")
    )


def could_help(error: GlowplugError, loaded: Sequence[str]) -> tuple[str, ...]:
    """Return the packages that may bring the operation for whose lack a model could not be loaded."""
    if not _MISSING.search(str(error)):
        return ()
    return tuple(name for name in installed() if name not in loaded)
