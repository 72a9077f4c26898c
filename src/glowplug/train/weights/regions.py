"""Byte ranges of a file as entries: mapped where they are aligned, else read in one call each.

The map is private: nothing that is done to the tensors reaches the file.
"""

from __future__ import annotations

import math
import mmap
import os
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from glowplug.core.disk.regular_files import open_regular
from glowplug.core.errors import StorageError, WeightsError

from .entry import Entry
from .tensors import ALIGNMENT, empty_aligned, from_bytes, numpy_dtype


class RegionFile:
    """An open file. Close it once every entry that is wanted was fetched: tensors keep the map they point into."""

    def __init__(self, path: Path, *, mapped: bool = True) -> None:
        self.path = path
        try:
            self._descriptor = open_regular(path)
            self.size = os.fstat(self._descriptor).st_size
        except OSError as error:
            raise StorageError("the weights cannot be read", seen=f"{path} ({error.strerror})") from error
        self._map: Any = None
        if mapped and self.size:
            self._map = np.frombuffer(mmap.mmap(self._descriptor, self.size, access=mmap.ACCESS_COPY), np.uint8)

    def __enter__(self) -> RegionFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)
        self._map = None

    def entry(self, name: str, dtype: str, shape: tuple[int, ...], offset: int) -> Entry:
        """Describe the tensor at `offset`; refuse one that reaches past the end of the file."""
        nbytes = math.prod(shape) * int(numpy_dtype(dtype).itemsize)
        if offset < 0 or offset + nbytes > self.size:
            raise truncated(self.path, f"{name} ends at byte {offset + nbytes} of {self.size}")

        def fetch() -> Any:
            if self._map is not None and offset % ALIGNMENT == 0:
                return from_bytes(self._map[offset : offset + nbytes], dtype, shape)
            return from_bytes(self.read(offset, nbytes), dtype, shape)

        return Entry(name, dtype, shape, nbytes, fetch)

    def read(self, offset: int, nbytes: int) -> Any:
        """Read a range into new, aligned memory. Unlike a copy out of the map, this leaves one copy resident."""
        buffer = empty_aligned(nbytes)
        done = 0
        while done < nbytes:
            got = os.preadv(self._descriptor, [memoryview(buffer)[done:]], offset + done)
            if not got:
                raise truncated(self.path, f"it ends at byte {offset + done}")
            done += got
        return buffer


def truncated(path: Path, seen: object) -> WeightsError:
    """Return the error for a file that is not whole."""
    return WeightsError(
        f"{path.name} is damaged or incomplete", seen=seen, remedy="fetch or save it again; the model was not changed"
    )
