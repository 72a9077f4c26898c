"""Many strings on their way through the front end: as the bytes they came in, without an object for each."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

LAZY_ELEMENTS = 1 << 10  # fewer are made at once


class PackedStrings:
    """Stands for an array of strings; whoever needs the strings themselves (`numpy.asarray`, an index) gets them.

    Its bytes are their lengths (int64), then the strings one after the other.
    """

    __slots__ = ("data", "shape")
    dtype = np.dtype(object)

    def __init__(self, data: memoryview, shape: tuple[int, ...]) -> None:
        self.data, self.shape = data, shape

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of strings."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """What it takes."""
        return len(self.data)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        return unpacked_strings(self.data, self.shape)[key]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return unpacked_strings(self.data, self.shape)

    @property
    def flat(self) -> Any:
        """The strings in order."""
        return unpacked_strings(self.data, self.shape).flat


def packed_strings(array: NDArray[Any] | PackedStrings) -> bytes | memoryview:
    """Return the bytes of an array of strings."""
    if isinstance(array, PackedStrings):
        return array.data
    items = [item.encode() if isinstance(item, str) else bytes(item) for item in array.flat]
    return np.array([len(item) for item in items], np.int64).tobytes() + b"".join(items)


def unpacked_strings(data: memoryview, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return the strings as objects."""
    count = math.prod(shape)
    lengths = np.frombuffer(data[: count * 8], np.int64).tolist()
    array, position = np.empty(count, object), count * 8
    for place, length in enumerate(lengths):
        array[place] = bytes(data[position : position + length])
        position += length
    return array.reshape(shape)
