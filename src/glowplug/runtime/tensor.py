"""`TF_Tensor`: arrays in, arrays out, and memory that TensorFlow reads in place.

A `Tensor` owns its `TF_Tensor` until `close()`; the bytes live on while TensorFlow holds a reference.
"""

from __future__ import annotations

import ctypes
import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glowplug.core.dtypes import BY_CODE, BY_NAME, numpy_dtype
from glowplug.core.errors import ClosedError, UnsupportedModelError

from . import strings
from .library import Library, open_library
from .symbols import Deallocator

# Up to here, copying is cheaper than finding an array's address, or than keeping track of who owns memory.
_SMALL_BYTES = 1 << 14


class Tensor:
    """One `TF_Tensor`."""

    __slots__ = ("__weakref__", "_keep", "_library", "_pointer")

    def __init__(self, library: Library, pointer: int, keep: object = None) -> None:
        self._library = library
        self._pointer: int | None = pointer
        self._keep = keep

    @classmethod
    def from_array(cls, array: NDArray[Any], dtype: str) -> Tensor:
        """Copy an array into memory of TensorFlow's, so that later changes to the array do not show."""
        library = open_library()
        if dtype == "string":
            return cls(library, strings.new_tensor(library, array))
        if not array.flags.c_contiguous:
            array = np.ascontiguousarray(array)
        nbytes = array.nbytes
        pointer = library.api.TF_AllocateTensor(BY_NAME[dtype].code, _dims(array.shape), array.ndim, nbytes)
        if nbytes:
            source = array.tobytes() if nbytes <= _SMALL_BYTES else array.ctypes.data
            ctypes.memmove(library.api.TF_TensorData(pointer), source, nbytes)
        return cls(library, pointer)

    @property
    def pointer(self) -> int:
        """The address of the `TF_Tensor`, for calls within this layer."""
        if self._pointer is None:
            raise ClosedError("the tensor is closed")
        return self._pointer

    @property
    def address(self) -> int:
        """The address of the first element."""
        return self._library.api.TF_TensorData(self.pointer) or 0

    def close(self) -> None:
        """Give up the tensor. Closing twice is harmless."""
        pointer, self._pointer = self._pointer, None
        if pointer is not None:
            self._library.api.TF_DeleteTensor(pointer)


class MappedMemory:
    """Memory that belongs to somebody else, lent to TensorFlow tensor by tensor.

    `released` counts the tensors that TensorFlow has let go of. One that is released while it is still lent was
    copied: that never happens on a 64-byte boundary.
    """

    def __init__(self, address: int, nbytes: int, keep: object) -> None:
        self.address = address
        self.nbytes = nbytes
        self.lent = 0
        self.released = 0
        self._keep: object = keep
        self._deallocator = Deallocator(self._release)

    def tensor(self, offset: int, nbytes: int, dtype: str, shape: tuple[int, ...]) -> Tensor:
        """Return a tensor whose elements are the bytes at `offset`, without a copy."""
        library = open_library()
        pointer = library.api.TF_NewTensor(
            BY_NAME[dtype].code,
            _dims(shape),
            len(shape),
            self.address + offset,
            nbytes,
            self._deallocator,
            None,
        )
        self.lent += 1
        return Tensor(library, pointer, keep=self)

    def forget(self) -> None:
        """Let go of the memory; for use when every tensor has been released."""
        self._keep = None

    def holds(self, address: int) -> bool:
        """Say whether an address lies inside this memory."""
        return self.address <= address < self.address + self.nbytes

    def _release(self, data: int, length: int, argument: int) -> None:
        self.released += 1


def take_array(library: Library, pointer: int, borrowed: MappedMemory | None) -> NDArray[Any]:
    """Turn a `TF_Tensor` that the caller owns into an array.

    A large array reads TensorFlow's memory in place and frees it when the last view goes. What lies inside `borrowed`
    (a model that returns one of its weights) is copied: that memory cannot be written and ends with the model.
    """
    api = library.api
    dtype = BY_CODE.get(api.TF_TensorType(pointer))
    shape = tuple([api.TF_Dim(pointer, axis) for axis in range(api.TF_NumDims(pointer))])
    if dtype is None:
        code = api.TF_TensorType(pointer)
        api.TF_DeleteTensor(pointer)
        raise UnsupportedModelError("an output has a type that numpy cannot carry", seen=f"TF_DataType {code}")
    if dtype.name == "string":
        array = strings.read(library, pointer, shape)
        api.TF_DeleteTensor(pointer)
        return array
    nbytes = api.TF_TensorByteSize(pointer)
    address = api.TF_TensorData(pointer)
    if nbytes <= _SMALL_BYTES or not address or (borrowed is not None and borrowed.holds(address)):
        data = bytearray(ctypes.string_at(address, nbytes) if nbytes else b"")
        api.TF_DeleteTensor(pointer)
        copied: NDArray[Any] = np.ndarray(shape, numpy_dtype(dtype.name), data)
        return copied
    memory = (ctypes.c_byte * nbytes).from_address(address)
    weakref.finalize(memory, api.TF_DeleteTensor, pointer).atexit = False
    return np.frombuffer(memory, numpy_dtype(dtype.name)).reshape(shape)


def _dims(shape: tuple[int, ...]) -> Any:
    return (ctypes.c_int64 * len(shape))(*shape)
