"""The element types of TensorFlow: name, number in the C API, and size of one element.

The names are numpy's, or ml_dtypes' for the types numpy lacks.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from .records import Record

if TYPE_CHECKING:
    import numpy as np


class DType(Record):
    """One element type. `itemsize` is 0 where elements have no fixed bytes (strings)."""

    name: str
    code: int
    itemsize: int


_ALL = (
    DType("float32", 1, 4),
    DType("float64", 2, 8),
    DType("int32", 3, 4),
    DType("uint8", 4, 1),
    DType("int16", 5, 2),
    DType("int8", 6, 1),
    DType("string", 7, 0),
    DType("complex64", 8, 8),
    DType("int64", 9, 8),
    DType("bool", 10, 1),
    DType("bfloat16", 14, 2),
    DType("uint16", 17, 2),
    DType("complex128", 18, 16),
    DType("float16", 19, 2),
    DType("uint32", 22, 4),
    DType("uint64", 23, 8),
    DType("float8_e5m2", 24, 1),
    DType("float8_e4m3fn", 25, 1),
    DType("float8_e4m3fnuz", 26, 1),
    DType("float8_e4m3b11fnuz", 27, 1),
    DType("float8_e5m2fnuz", 28, 1),
    DType("int4", 29, 1),
    DType("uint4", 30, 1),
)

BY_NAME = {dtype.name: dtype for dtype in _ALL}
BY_CODE = {dtype.code: dtype for dtype in _ALL}

ML_DTYPES = frozenset({"bfloat16", "int4", "uint4"} | {name for name in BY_NAME if name.startswith("float8")})


@cache
def numpy_dtype(name: str) -> np.dtype[Any]:
    """Return numpy's dtype for one of our dtype names; strings are Python objects (`bytes`)."""
    import numpy as np

    if name == "string":
        return np.dtype(object)
    if name in ML_DTYPES:
        import ml_dtypes

        name = getattr(ml_dtypes, name)
    dtype: np.dtype[Any] = np.dtype(name)
    return dtype
