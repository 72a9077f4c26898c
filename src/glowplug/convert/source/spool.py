"""A scratch file for arrays, so that a conversion holds one tensor in memory and not all of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Value = Callable[[], NDArray[Any]]


class Spool:
    """Appends arrays to one file and reads them back on demand."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stream = path.open("wb", buffering=0)
        self._offset = 0

    def store(self, array: NDArray[Any]) -> Value:
        """Append an array and return a function that reads it back. Strings stay in memory."""
        if array.dtype == object:
            return lambda: array
        array = np.ascontiguousarray(array).reshape(array.shape)
        offset, dtype, shape = self._offset, array.dtype, array.shape
        view = memoryview(array.reshape(-1).view(np.uint8).data)
        while view:
            view = view[self._stream.write(view) :]
        self._offset += array.nbytes

        def read() -> NDArray[Any]:
            count = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
            return np.fromfile(self._path, np.uint8, count, offset=offset).view(dtype).reshape(shape)

        return read

    def close(self) -> None:
        """Close and remove the file."""
        self._stream.close()
        self._path.unlink(missing_ok=True)
