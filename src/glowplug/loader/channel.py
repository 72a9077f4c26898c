"""How a model's owner and the process that hosts it talk: packets on a socket, arrays in shared memory.

Each direction has one memory file, written by one side and mapped by the other. It grows with the largest call, and a
call ends before the next one begins, so its bytes are used again and again.
"""

from __future__ import annotations

import marshal
import math
import mmap
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glowplug.core import errors
from glowplug.core.dtypes import numpy_dtype

SOCKET, INPUTS, OUTPUTS = 3, 4, 5  # the hosting process's descriptors, passed by the owner
ALIGNMENT = 64
_STEP = 1 << 16


class Arena:
    """A memory file and its map. Both sides have one on the same descriptor."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._map: mmap.mmap | None = None

    def put(self, arrays: Sequence[NDArray[Any]], dtypes: Sequence[str]) -> list[tuple[str, list[int], int, int]]:
        """Write the arrays; return dtype, shape, offset and size of each."""
        data = [_strings(array) if dtype == "string" else None for array, dtype in zip(arrays, dtypes, strict=True)]
        sizes = [array.nbytes if text is None else len(text) for array, text in zip(arrays, data, strict=True)]
        rows, end = [], 0
        for array, dtype, size in zip(arrays, dtypes, sizes, strict=True):
            rows.append((dtype, list(array.shape), end, size))
            end += -(-size // ALIGNMENT) * ALIGNMENT
        target = self._mapped(end, grow=True)
        for array, text, (_, _, offset, size) in zip(arrays, data, rows, strict=True):
            if text is not None:
                target[offset : offset + size] = text
            elif size:
                place = np.frombuffer(target, np.uint8, size, offset)
                place[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        return rows

    def get(self, rows: Sequence[tuple[str, list[int], int, int]], *, copy: bool) -> list[NDArray[Any]]:
        """Read arrays back; without `copy` they are valid until the next call."""
        source = self._mapped(max((offset + size for _, _, offset, size in rows), default=0), grow=False)
        found = []
        for dtype, shape, offset, size in rows:
            if dtype == "string":
                array = np.empty(math.prod(shape), object)
                array[:] = marshal.loads(source[offset : offset + size])
            else:
                kind = numpy_dtype(dtype)
                array = np.frombuffer(source, kind, size // kind.itemsize, offset)
                array = array.copy() if copy else array
            found.append(array.reshape(shape))
        return found

    def close(self) -> None:
        """Give the memory back, once no array points into it."""
        self._map = None
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def _mapped(self, size: int, *, grow: bool) -> mmap.mmap:
        if self._map is None or len(self._map) < size:
            if grow:
                os.ftruncate(self.descriptor, max(-(-size // _STEP), 1) * _STEP)
            self._map = mmap.mmap(self.descriptor, 0)  # the old map goes with the last array in it
        return self._map


def describe_error(error: errors.GlowplugError) -> dict[str, Any]:
    """Return what the other side needs to raise the same error."""
    seen = None if error.seen is None else str(error.seen)
    described = {"error": type(error).__name__, "what": error.what, "seen": seen, "remedy": error.remedy}
    if isinstance(error, errors.TensorFlowError):
        described["code"] = error.code
    return described


def rebuild_error(message: dict[str, Any]) -> errors.GlowplugError:
    """Return the error that the other side described."""
    kind = getattr(errors, message["error"], errors.GlowplugError)
    extra = {"code": message["code"]} if "code" in message else {}
    error: errors.GlowplugError = kind(message["what"], seen=message["seen"], remedy=message["remedy"], **extra)
    return error


def _strings(array: NDArray[Any]) -> bytes:
    return marshal.dumps([item.encode() if isinstance(item, str) else bytes(item) for item in array.flat])
