"""String tensors: arrays of `TF_TString`, 24 bytes each, the short ones inside, the long ones on TensorFlow's heap."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glowplug.core.dtypes import BY_NAME

from .library import Library
from .symbols import Deallocator

_ITEM_BYTES = 24  # sizeof(TF_TString)
_ALIGNMENT = 64

_lent: dict[int, tuple[Any, Library]] = {}  # address of the elements -> the memory that holds them


def new_tensor(library: Library, array: NDArray[Any]) -> int:
    """Return a new `TF_Tensor` with the array's elements, which are `bytes` or `str`.

    TensorFlow may keep the elements (a model that stores or returns its input), so they are freed by its
    deallocator and not by the caller.
    """
    memory = ctypes.create_string_buffer(array.size * _ITEM_BYTES + _ALIGNMENT)
    address = -(-ctypes.addressof(memory) // _ALIGNMENT) * _ALIGNMENT
    start, copy = library.api.TF_StringInit, library.api.TF_StringCopy
    for place, item in enumerate(array.flat, 0):
        data = item.encode() if isinstance(item, str) else bytes(item)
        start(address + place * _ITEM_BYTES)
        copy(address + place * _ITEM_BYTES, data, len(data))
    dims = (ctypes.c_int64 * array.ndim)(*array.shape)
    _lent[address] = (memory, library)
    pointer: int = library.api.TF_NewTensor(
        BY_NAME["string"].code, dims, array.ndim, address, array.size * _ITEM_BYTES, _free, None
    )
    return pointer


def read(library: Library, pointer: int, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return the elements of a string tensor as an array of `bytes` objects."""
    address = library.api.TF_TensorData(pointer) or 0
    data, size = library.api.TF_StringGetDataPointer, library.api.TF_StringGetSize
    array = np.empty(shape, object)
    flat = array.reshape(-1)
    for place in range(flat.size):
        item = address + place * _ITEM_BYTES
        flat[place] = ctypes.string_at(data(item), size(item))
    return array


def _release(data: int, length: int, argument: int) -> None:
    """Run by TensorFlow, on any of its threads, when the last reference to the elements is gone."""
    _memory, library = _lent.pop(data)
    for place in range(length // _ITEM_BYTES):
        library.api.TF_StringDealloc(data + place * _ITEM_BYTES)


_free = Deallocator(_release)
