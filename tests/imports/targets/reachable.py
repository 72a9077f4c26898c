"""The names that are reachable from `tf`, `tf.keras` and `keras`, each with what it names."""

from __future__ import annotations

import types
from collections.abc import Iterator

import keras
import tensorflow as tf

# What shows the process or belongs to the import system, and not to the API.
_LEFT_OUT = ("__builtins__", "__cached__", "__loader__", "__spec__", "__warningregistry__", "_os", "_sys")


def names() -> Iterator[tuple[str, object]]:
    """Go through the pages of the API, each once; where a name cannot be had, the exception is what it names."""
    visited: set[int] = set()
    for path, module in (("tf", tf), ("tf.keras", tf.keras), ("keras", keras)):
        yield from _of_page(path, module, visited)


def _of_page(path: str, module: types.ModuleType, visited: set[int]) -> Iterator[tuple[str, object]]:
    if id(module) in visited:
        return
    visited.add(id(module))
    for name in sorted(dir(module)):
        if name in _LEFT_OUT:
            continue
        where = f"{path}.{name}"
        try:
            value = getattr(module, name)
        except Exception as error:
            yield where, error
            continue
        yield where, value
        named = getattr(value, "__name__", "") or ""
        is_page = named.startswith(("tensorflow._api", "keras.", "tensorflow.keras")) and "keras.src" not in named
        if isinstance(value, types.ModuleType) and is_page:
            yield from _of_page(where, value, visited)
