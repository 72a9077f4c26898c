"""Checked readers for the fields of a JSON document.

Each takes a value that nothing is known about and the place it was found at, and returns it typed and bounded
or raises `ManifestMalformedError` naming that place.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any, NoReturn

from glowplug.core.errors import ManifestMalformedError

MAX_TEXT_CHARS = 4096
MAX_INTEGER = 2**62
MAX_DEPTH = 32

REMEDY = "pack the model again"


def refuse(where: str, expected: str, seen: object) -> NoReturn:
    """Raise `ManifestMalformedError`: at `where` stands `seen`, which is not `expected`."""
    shown = ascii(seen)
    raise ManifestMalformedError(
        f"the manifest is malformed at {where}: expected {expected}",
        seen=shown if len(shown) <= 100 else f"{shown[:97]}...",
        remedy=REMEDY,
    )


def record(value: Any, where: str, keys: frozenset[str], *optional: str) -> dict[str, Any]:
    """Return an object that has exactly `keys`, and perhaps some of the `optional` ones."""
    if type(value) is not dict:
        refuse(where, "an object", value)
    if value.keys() - set(optional) != keys:
        if missing := sorted(keys - value.keys()):
            refuse(where, "every field of the format", f"no {', '.join(missing)}")
        refuse(where, "no field outside the format", sorted(value.keys() - keys - set(optional))[0])
    return value


def table(value: Any, where: str) -> dict[str, Any]:
    """Return an object, whatever its keys."""
    if type(value) is not dict:
        refuse(where, "an object", value)
    return value


def mapping(value: Any, where: str) -> dict[str, Any]:
    """Return an object whose keys are bounded, printable, non-empty texts."""
    checked = table(value, where)
    for key in checked:
        text(key, f"a key of {where}")
    return checked


def array(value: Any, where: str) -> list[Any]:
    """Return an array."""
    if type(value) is not list:
        refuse(where, "an array", value)
    return value


def text(value: Any, where: str, *, empty: bool = False) -> str:
    """Return a bounded, printable text."""
    if type(value) is not str or len(value) > MAX_TEXT_CHARS or not (value or empty):
        refuse(where, f"a text of at most {MAX_TEXT_CHARS} characters", value)
    if not value.isprintable():  # names end up in messages and on terminals
        refuse(where, "a text without control characters", value)
    return value


def integer(value: Any, where: str, limit: int = MAX_INTEGER) -> int:
    """Return an integer from 0 to `limit`. A boolean is none, and neither is 3.0."""
    if type(value) is not int or not 0 <= value <= limit:
        refuse(where, f"an integer from 0 to {limit}", value)
    return value


def free_form(value: Any, where: str, depth: int = MAX_DEPTH) -> Any:
    """Return any JSON value whose texts are sound and whose nesting is bounded."""
    if depth == 0:
        refuse(where, f"at most {MAX_DEPTH} levels", "more")
    if type(value) is dict:
        for key, item in value.items():
            text(key, f"a key of {where}", empty=True)
            free_form(item, where, depth - 1)
    elif type(value) is list:
        for item in value:
            free_form(item, where, depth - 1)
    elif type(value) is str:
        if not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value):
            refuse(where, "Unicode text", value)  # half of a surrogate pair: JSON can write it, nothing can print it
    elif type(value) is float and not isfinite(value):  # JSON has no infinity, but 1e999 reads as one
        refuse(where, "a finite number", value)
    return value


def free_object(value: Any, where: str) -> Mapping[str, Any]:
    """Return an object with anything in it, within the bounds of `free_form`."""
    checked = table(value, where)
    free_form(checked, where)
    return checked
