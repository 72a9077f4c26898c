"""What passes between the front end and a worker over their socket: a fixed header, a JSON part, the tensors' bytes.

    u32 length of the JSON part, u64 length of the tensors' bytes, u32 number of the call, u8 kind   (little endian)

Both ends are processes of one server, so nothing here is a stored format.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, cast

import numpy as np
import orjson
from numpy.typing import NDArray

from glowplug.core.dtypes import numpy_dtype
from glowplug.serve.wire.array_types import dtype_name

from .packed_strings import LAZY_ELEMENTS, PackedStrings, packed_strings, unpacked_strings

CALL, ANSWER, FAILURE, READY = range(1, 5)
TIMES = "\0times"  # as a wanted output: when the worker ran the call, and its process

HEADER = struct.Struct("<IQIB")

Tensors = Mapping[str, NDArray[Any]]
Buffer = bytes | memoryview
_Place = tuple[str, "np.dtype[Any] | None", tuple[int, ...], int, int]  # name, type (None: strings), shape, start, size

_SMALL_BYTES = 1 << 16  # up to here, one copy costs less than handling pieces
_MAX_KEPT_BYTES = 1 << 10


def pack(kind: int, number: int, document: Any, tensors: Tensors | None = None) -> list[Buffer]:
    """Return the pieces of a frame, to be sent one after the other; a small frame is one piece."""
    described, pieces, size = [], list[Buffer](), 0
    for name, array in (tensors or {}).items():
        dtype = dtype_name(array)
        data = packed_strings(array) if dtype == "string" else _element_bytes(array)
        described.append((name, dtype, array.shape, len(data)))
        pieces.append(data)
        size += len(data)
    head = orjson.dumps([document, described])
    pieces.insert(0, HEADER.pack(len(head), size, number, kind) + head)
    return [b"".join(pieces)] if size <= _SMALL_BYTES else pieces


def unpack(head: bytes, payload: memoryview, *, lazily: bool = False) -> tuple[Any, dict[str, NDArray[Any]]]:
    """Return the document and the arrays of a frame. The arrays read the payload in place; leave both as they are.

    `lazily` is for whoever passes them on: very many strings stay packed until somebody looks at them.
    """
    document, layout = _layout(head) if len(head) <= _MAX_KEPT_BYTES else _layout.__wrapped__(head)
    arrays = dict[str, NDArray[Any]]()
    for name, dtype, shape, start, size in layout:
        if dtype is None:
            data = payload[start : start + size]
            if lazily and math.prod(shape) > LAZY_ELEMENTS:
                arrays[name] = cast("NDArray[Any]", PackedStrings(data, shape))
            else:
                arrays[name] = unpacked_strings(data, shape)
        else:
            arrays[name] = np.ndarray(shape, dtype, payload, start)
    return document, arrays


def read(data: memoryview, *, lazily: bool = False) -> dict[str, NDArray[Any]]:
    """Return the arrays of one whole frame, as `unpack` does."""
    head_size, _, _, _ = HEADER.unpack_from(data)
    cut = HEADER.size + head_size
    return unpack(bytes(data[HEADER.size : cut]), data[cut:], lazily=lazily)[1]


@lru_cache(maxsize=256)
def _layout(head: bytes) -> tuple[Any, list[_Place]]:
    """Read the JSON part, which is the same in most calls of a model."""
    document, described = orjson.loads(head)
    layout, start = list[_Place](), 0
    for name, dtype, shape, size in described:
        layout.append((name, None if dtype == "string" else numpy_dtype(dtype), tuple(shape), start, size))
        start += size
    return document, layout


def _element_bytes(array: NDArray[Any]) -> Buffer:
    if array.nbytes <= _SMALL_BYTES:
        return array.tobytes()
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


class Splitter:
    """Cuts a stream of bytes into frames and hands each to `receive(kind, number, head, payload)`."""

    def __init__(self, receive: Callable[[int, int, bytes, memoryview], None]) -> None:
        self._receive = receive
        self._pending: list[bytes] = []
        self._missing = 0

    def feed(self, data: bytes) -> None:
        """Take more bytes."""
        if self._pending:
            self._pending.append(data)
            self._missing -= len(data)
            if self._missing > 0:
                return
            data = b"".join(self._pending)
            self._pending = []
        position, end, view = 0, len(data), memoryview(data)
        while end - position >= HEADER.size:
            head_size, payload_size, number, kind = HEADER.unpack_from(data, position)
            start = position + HEADER.size
            cut = start + head_size
            stop = cut + payload_size
            if stop > end:
                self._missing = stop - end
                break
            self._receive(kind, number, data[start:cut], view[cut:stop])
            position = stop
        else:
            self._missing = HEADER.size - (end - position)
        if position < end:
            self._pending = [data[position:]]
