"""Reads which classes were registered as subclasses of an abstract one: `isinstance` knows, no attribute shows it."""

from __future__ import annotations

import _abc  # type: ignore[import-not-found]
import types
from collections import Counter
from typing import Any

from .errors import NoKeyError
from .trusted import is_stock_function


def registered_subclasses(kind: Any) -> list[type[Any]]:
    """Return the classes that `kind.register` was called with and that are alive, in a fixed order."""
    if "_abc_impl" not in type.__getattribute__(kind, "__dict__"):
        return []
    found = [each for each in (reference() for reference in _abc._get_dump(kind)[0]) if each is not None]
    names = [(str(each.__module__), str(each.__qualname__)) for each in found]
    counts = Counter(names)
    if any(counts[name] > 1 and not _is_compiled(each) for name, each in zip(names, found, strict=True)):
        raise NoKeyError(f"{kind.__qualname__} has two registered subclasses of one name")
    return [each for _, each in sorted(zip(names, found, strict=True), key=lambda pair: pair[0])]


def _is_compiled(kind: Any) -> bool:
    """Whether a class was made by compiled code and has none of the program's.

    Every extension module of Cython's that uses arrays registers an `array` of its own, all of one name. No class
    statement makes a descriptor of a C function that belongs to the class itself.
    """
    members = type.__getattribute__(kind, "__dict__").values()
    return any(
        type(each) in (types.WrapperDescriptorType, types.MethodDescriptorType) and each.__objclass__ is kind
        for each in members
    ) and all(is_stock_function(each) for each in members if type(each) is types.FunctionType)
