"""The datasets of an HDF5 file as entries. Those stored in one piece are read past HDF5, at their place in the file.

Links out of the file and datasets whose bytes lie elsewhere are refused: a weights file names no other file.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack
from typing import Any

import h5py
import numpy as np

from glowplug.core.errors import WeightsError

from .entry import Entry
from .regions import RegionFile, truncated
from .tensors import from_bytes, numpy_dtype

_LOCK = threading.Lock()  # h5py serialises its calls anyway; a file object behind it must not be shared


def open_file(source: Any, file: RegionFile, files: ExitStack) -> h5py.File:
    """Open HDF5 content for reading; `source` is a path or a file object over (a part of) `file`."""
    try:
        return files.enter_context(h5py.File(source, "r"))
    except (OSError, RuntimeError) as error:
        raise truncated(file.path, error) from error


def entries(root: h5py.File, file: RegionFile, base: int | None) -> dict[str, Entry]:
    """Return every dataset by its path. `base` is where the HDF5 content begins in `file`, None if not stored as is."""
    found: dict[str, Entry] = {}

    def visit(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            found[name] = _entry(name, item, file, base)

    try:
        root.visititems(visit)  # follows neither soft nor external links
    except (OSError, RuntimeError, KeyError) as error:
        raise truncated(file.path, error) from error
    return found


def _entry(name: str, dataset: h5py.Dataset, file: RegionFile, base: int | None) -> Entry:
    if dataset.is_virtual or dataset.external:
        raise WeightsError(
            "a dataset lies in another file", seen=f"{name} of {file.path.name}", remedy="save the weights in one file"
        )
    stored = dataset.dtype
    marked = dataset.attrs.get("dtype")
    dtype = "bfloat16" if marked == "bfloat16" else stored.name
    shape = tuple(int(size) for size in dataset.shape or ())
    offset = dataset.id.get_offset()
    plain = stored.isnative and stored.kind in "fiubcV" and stored.itemsize == _itemsize(dtype)
    if base is not None and offset is not None and plain:
        return file.entry(name, dtype, shape, base + offset)

    def fetch() -> Any:
        try:
            with _LOCK:
                value = np.asarray(dataset[...])
        except (OSError, RuntimeError) as error:
            raise truncated(file.path, f"{name}: {error}") from error
        if value.dtype.itemsize != _itemsize(dtype) or value.dtype.kind != "V":
            value = value.astype(numpy_dtype(dtype))
        return from_bytes(np.ascontiguousarray(value).reshape(-1).view(np.uint8), dtype, shape)

    return Entry(name, dtype, shape, int(dataset.size or 0) * _itemsize(dtype), fetch)


def _itemsize(dtype: str) -> int:
    try:
        return int(numpy_dtype(dtype).itemsize)
    except (TypeError, AttributeError):
        return 0
