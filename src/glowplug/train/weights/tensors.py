"""Turns bytes in memory into TensorFlow tensors, without a copy where TensorFlow can use them where they lie.

A variable that is assigned such a tensor shares its bytes. TensorFlow never updates memory in place that it does not
own: the first training step gives the variable memory of its own.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import tensorflow as tf

ALIGNMENT = 64  # kernels assume it, and only some of them check

_SHARED = frozenset({"float32", "float64", "float16", "int8", "int16", "int32", "int64"}) | frozenset(
    {"uint8", "uint16", "uint32", "uint64", "complex64", "complex128", "bool"}
)


def numpy_dtype(name: str) -> Any:
    """Return the numpy dtype of this name, from ml_dtypes where numpy has none."""
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name))


def empty_aligned(nbytes: int) -> Any:
    """Return `nbytes` bytes of new memory that begin on a 64-byte boundary."""
    memory = np.empty(nbytes + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + nbytes]


def from_bytes(data: Any, dtype: str, shape: tuple[int, ...]) -> Any:
    """Return a tensor over writable bytes (an array of uint8), shared if they are aligned and TensorFlow can."""
    if not math.prod(shape):
        return tf.zeros(shape, dtype)
    if data.ctypes.data % ALIGNMENT:
        aligned = empty_aligned(data.nbytes)
        aligned[:] = data
        data = aligned
    if dtype in _SHARED:
        return _share(data.view(dtype).reshape(shape))
    if dtype == "bfloat16":
        return tf.bitcast(_share(data.view(np.uint16).reshape(shape)), tf.bfloat16)
    return tf.constant(data.view(numpy_dtype(dtype)).reshape(shape))


def _share(array: Any) -> Any:
    return tf.experimental.dlpack.from_dlpack(array.__dlpack__())
