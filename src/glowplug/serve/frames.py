"""What passes between the front end and a worker over their socket: a fixed header, a JSON part, the tensors' bytes.

    u32 length of the JSON part, u64 length of the tensors' bytes, u32 number of the call, u8 kind   (little endian)

Both ends are processes of one server, so nothing here is a stored format.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from glowplug.runtime.tensor import numpy_dtype

from .array_types import dtype_name

CALL, ANSWER, FAILURE, READY = range(1, 5)

HEADER = struct.Struct("<IQIB")

Tensors = Mapping[str, NDArray[Any]]
Buffer = bytes | memoryview


def pack(kind: int, number: int, document: Any, tensors: Tensors | None = None) -> list[Buffer]:
    """Return the pieces of a frame, to be sent one after the other."""
    described, pieces = [], list[Buffer]()
    for name, array in (tensors or {}).items():
        data = _string_bytes(array) if array.dtype == object else _element_bytes(array)
        described.append((name, dtype_name(array), array.shape, len(data)))
        pieces.append(data)
    head = orjson.dumps([document, described])
    size = sum(map(len, pieces))
    return [HEADER.pack(len(head), size, number, kind) + head, *pieces]


def unpack(head: Buffer, payload: memoryview) -> tuple[Any, dict[str, NDArray[Any]]]:
    """Return the document and the arrays of a frame. The arrays read the payload in place."""
    document, described = orjson.loads(head)
    arrays, position = dict[str, NDArray[Any]](), 0
    for name, dtype, shape, size in described:
        data = payload[position : position + size]
        position += size
        if dtype == "string":
            arrays[name] = _strings(data, shape)
        else:
            arrays[name] = np.frombuffer(data, numpy_dtype(dtype)).reshape(shape)
    return document, arrays


def _element_bytes(array: NDArray[Any]) -> memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _string_bytes(array: NDArray[Any]) -> bytes:
    items = [item.encode() if isinstance(item, str) else bytes(item) for item in array.flat]
    return np.array([len(item) for item in items], np.int64).tobytes() + b"".join(items)


def _strings(data: memoryview, shape: Sequence[int]) -> NDArray[Any]:
    count = int(np.prod(shape, dtype=np.int64))
    lengths = np.frombuffer(data[: count * 8], np.int64).tolist()
    array, position = np.empty(count, object), count * 8
    for place, length in enumerate(lengths):
        array[place] = bytes(data[position : position + length])
        position += length
    return array.reshape(shape)


class Splitter:
    """Cuts a stream of bytes into frames and hands each to `receive(kind, number, head, payload)`."""

    def __init__(self, receive: Callable[[int, int, bytes, memoryview], None]) -> None:
        self._receive = receive
        self._pending = bytearray()
        self._needed = HEADER.size

    def feed(self, data: bytes) -> None:
        """Take more bytes."""
        self._pending += data
        while len(self._pending) >= self._needed:
            head_size, payload_size, number, kind = HEADER.unpack_from(self._pending)
            end = HEADER.size + head_size + payload_size
            if len(self._pending) < end:
                self._needed = end
                return
            frame = bytes(memoryview(self._pending)[:end])
            del self._pending[:end]
            self._needed = HEADER.size
            cut = HEADER.size + head_size
            self._receive(kind, number, frame[HEADER.size : cut], memoryview(frame)[cut:])
