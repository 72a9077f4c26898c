"""Calls functions of the C library that Python's own modules do not have.

Through `_ctypes`, which a client has loaded in half a millisecond: `ctypes` itself takes several times as long.
Arguments are numbers, and bytes for what is pointed to; where the kernel writes into those, they are `room` for it.
"""

from __future__ import annotations

from typing import Any


def call(function: str, *arguments: int | bytes) -> int:
    """Return what the function returns."""
    import _ctypes

    library: Any = _ctypes
    return int(library.call_function(library.dlsym(library.dlopen(None, 0), function), arguments))


def room(size: int) -> bytes:
    """Return so many bytes that nobody else refers to."""
    return bytes(bytearray(size))
