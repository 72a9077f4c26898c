"""Finds what was put into the modules of stock packages while the program ran.

Nothing leads from a model to `keras.src.backend.tensorflow.nn.relu`, yet whoever replaces it changes what a step
computes. So every module of the stock packages is looked through. A function under its own name is where it belongs. A
stock function under another name is an alias, or was put in another's place: all of these together are one digest.
Everything else that can be called is a replacement, and is hashed by value.
"""

from __future__ import annotations

import functools
import hashlib
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .leaves import leaf_text
from .trusted import HOST_METHODS, is_stock_function, is_stock_module, root_of

_PACKAGES = frozenset({"keras", "tensorflow", "numpy"})
# What is left of a loop over a set when TensorFlow is imported: another function in each process.
_UNSETTLED = frozenset({"tensorflow.python.ops.weak_tensor_ops.tensor_oper"})
_COMPILED = ("pybind11", "_cython")  # how modules of such types begin


@dataclass(frozen=True, slots=True)
class Replacements:
    """`found` are `(place, value)`, in a fixed order; `aliases` is a digest."""

    found: list[tuple[str, Any]]
    aliases: str


def replacements() -> Replacements:
    """Look through the modules of the stock packages that are loaded."""
    found: list[tuple[str, Any]] = []
    aliases: list[str] = []
    for place, value in _unusual():
        origin = _origin(value)
        if place in _UNSETTLED:
            continue
        if origin:
            aliases.append(f"{place}={origin}")
        else:
            found.append((place, value))
    whole = "\n".join(sorted(aliases)).encode()
    return Replacements(sorted(found, key=lambda each: each[0]), hashlib.sha256(whole).hexdigest())


def _unusual() -> Iterator[tuple[str, Any]]:
    for module_name, module in list(sys.modules.items()):
        if root_of(module_name) not in _PACKAGES or not isinstance(module, types.ModuleType):
            continue
        for name, value in list(vars(module).items()):
            kind: Any = type(value)
            if kind is types.FunctionType:
                usual = value.__name__ == name and is_stock_function(value)
            else:
                usual = kind is not functools.partial and (_is_stock_kind(kind) or not callable(value))
            if not usual and name not in HOST_METHODS:
                yield f"{module_name}.{name}", value


def _origin(value: Any) -> str:
    """Return where stock code, or a plain partial of it, comes from; nothing for anything else."""
    if isinstance(value, functools.partial):
        given: dict[Any, Any] = {**dict(enumerate(value.args)), **value.keywords}
        texts = {name: leaf_text(each) or _origin(each) for name, each in given.items()}
        origin = _origin(value.func)
        return f"{origin} {texts}" if origin and all(texts.values()) else ""
    if isinstance(value, types.FunctionType):
        return f"{value.__module__}.{value.__qualname__}" if is_stock_function(value) else ""
    return f"{value.__module__}.{value.__qualname__}" if isinstance(value, type) and _is_stock_kind(value) else ""


@functools.lru_cache(maxsize=4096)
def _is_stock_kind(kind: Any) -> bool:
    module = str(kind.__module__)
    return is_stock_module(module) or module.startswith(_COMPILED)
