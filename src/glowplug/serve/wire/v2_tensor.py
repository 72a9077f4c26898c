"""Tensors of the Open Inference Protocol: its names of types, raw bytes, and the typed contents of its messages.

Raw bytes are the elements one after the other, little end first; a string is its length in four bytes, then its bytes.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glowplug.core.dtypes import BY_NAME, numpy_dtype
from glowplug.core.errors import RequestError
from glowplug.core.protobuf_wire import bytes_field, read_varint

from .array_types import dtype_name
from .limits import Limits, checked_shape
from .tensor_proto import STRING_BYTES, from_content

DTYPES = {
    "BOOL": "bool",
    "UINT8": "uint8",
    "UINT16": "uint16",
    "UINT32": "uint32",
    "UINT64": "uint64",
    "INT8": "int8",
    "INT16": "int16",
    "INT32": "int32",
    "INT64": "int64",
    "FP16": "float16",
    "FP32": "float32",
    "FP64": "float64",
    "BF16": "bfloat16",
    "BYTES": "string",
}
_DATATYPES = {dtype: datatype for datatype, dtype in DTYPES.items()}
# The field of `InferTensorContents` for a type. Halves have none: they travel raw.
_FIELDS = {
    "bool": "bool_contents",
    "int8": "int_contents",
    "int16": "int_contents",
    "int32": "int_contents",
    "int64": "int64_contents",
    "uint8": "uint_contents",
    "uint16": "uint_contents",
    "uint32": "uint_contents",
    "uint64": "uint64_contents",
    "float32": "fp32_contents",
    "float64": "fp64_contents",
    "string": "bytes_contents",
}
_FIXED = {"float32": 6, "float64": 7}  # numbers of fields whose bytes are an array's
_LENGTH = struct.Struct("<I")


def datatype_of(dtype: str) -> str:
    """Return the protocol's name of one of our types; those that it does not have keep ours, in capitals."""
    return _DATATYPES.get(dtype, dtype.upper())


def output_datatype(array: NDArray[Any], name: str) -> str:
    """Return the protocol's name of an output's type."""
    try:
        return _DATATYPES[dtype_name(array)]
    except KeyError:
        raise RequestError(
            f"output {name!r} has a type that the Open Inference Protocol does not have",
            seen=dtype_name(array),
            remedy="ask for other outputs",
        ) from None


def input_dtype(datatype: Any, name: str) -> str:
    """Return our name of an input's type."""
    found = DTYPES.get(datatype) if isinstance(datatype, str) else None
    if found is None:
        raise RequestError(
            f"input {name!r} has an unknown datatype", seen=str(datatype)[:40], remedy=f"one of {', '.join(DTYPES)}"
        )
    return found


def shape_of(name: str, dtype: str, sizes: Sequence[int], limits: Limits) -> tuple[int, ...]:
    """Return the shape of an input, if a tensor of it may be made."""
    return checked_shape(name, sizes, BY_NAME[dtype].itemsize or STRING_BYTES, limits)


def from_raw(data: bytes | memoryview, dtype: str, shape: tuple[int, ...], name: str) -> NDArray[Any]:
    """Return the array of an input's raw bytes."""
    if dtype == "string":
        return _split(memoryview(data), math.prod(shape), name).reshape(shape)
    expected = math.prod(shape) * BY_NAME[dtype].itemsize
    if len(data) != expected:
        raise RequestError(
            f"the bytes of input {name!r} do not fit its shape",
            seen=f"{len(data)} bytes for {datatype_of(dtype)}{list(shape)}",
            remedy=f"send {expected} bytes",
        )
    return from_content(data, dtype, numpy_dtype(dtype)).reshape(shape)


def _split(data: memoryview, count: int, name: str) -> NDArray[Any]:
    items, position = list[bytes](), 0
    while position + _LENGTH.size <= len(data) and len(items) < count:
        start = position + _LENGTH.size
        end = start + _LENGTH.unpack_from(data, position)[0]
        if end > len(data):
            break
        items.append(bytes(data[start:end]))
        position = end
    if len(items) != count or position != len(data):
        raise RequestError(
            f"the bytes of input {name!r} are not {count} strings",
            seen=f"{len(items)} in {len(data)} bytes",
            remedy="before each string put its length, four bytes, little end first",
        )
    array = np.empty(count, object)  # not before they are there: a shape is cheap to send
    array[:] = items
    return array


def to_raw(array: NDArray[Any]) -> bytes:
    """Return the raw bytes of an output."""
    if array.dtype != object:
        return np.ascontiguousarray(array).tobytes()
    strings = [item.encode() if isinstance(item, str) else bytes(item) for item in array.flat]
    return b"".join(piece for item in strings for piece in (_LENGTH.pack(len(item)), item))


def from_contents(contents: Any, dtype: str, shape: tuple[int, ...], name: str) -> NDArray[Any]:
    """Return the array of an input's `InferTensorContents`."""
    field = _FIELDS.get(dtype)
    if field is None:
        raise RequestError(f"input {name!r} must be sent raw", seen=f"{datatype_of(dtype)} in contents")
    values, count = getattr(contents, field), math.prod(shape)
    if len(values) != count:
        raise RequestError(
            f"the contents of input {name!r} do not fit its shape",
            seen=f"{len(values)} elements in {field} for {datatype_of(dtype)}{list(shape)}",
            remedy=f"send {count}",
        )
    if dtype == "string":
        array = np.empty(count, object)
        array[:] = list(values)
        return array.reshape(shape)
    if dtype in _FIXED and count:
        return _fixed(contents, field, count, numpy_dtype(dtype)).reshape(shape)
    return _narrowed(np.fromiter(values, np.uint64 if dtype == "uint64" else np.int64, count), dtype, name).reshape(
        shape
    )


def _fixed(contents: Any, field: str, count: int, wanted: np.dtype[Any]) -> NDArray[Any]:
    """Return elements from the bytes of their field, which protobuf gives only by writing it."""
    alone = type(contents)()
    getattr(alone, field).MergeFrom(getattr(contents, field))
    data = alone.SerializeToString()
    length, _ = read_varint(data, 1, len(data))
    return np.frombuffer(data, wanted, count, offset=len(data) - length)


def _narrowed(values: NDArray[Any], dtype: str, name: str) -> NDArray[Any]:
    wanted = numpy_dtype(dtype)
    narrow = values.astype(wanted)
    if wanted.kind in "iu" and not np.array_equal(narrow, values):
        odd = values[narrow != values][0]
        raise RequestError(f"input {name!r} must be {datatype_of(dtype)}", seen=f"got {odd}, which is out of range")
    return narrow


def has_contents(dtype: str) -> bool:
    """Say whether a type can be sent as `InferTensorContents`."""
    return dtype in _FIELDS


def fill_contents(contents: Any, array: NDArray[Any]) -> None:
    """Write an output into an empty `InferTensorContents`."""
    dtype = dtype_name(array)
    if dtype in _FIXED:
        if array.size:
            contents.MergeFromString(bytes_field(_FIXED[dtype], np.ascontiguousarray(array).tobytes()))
    elif dtype == "string":
        contents.bytes_contents.extend(item.encode() if isinstance(item, str) else bytes(item) for item in array.flat)
    else:
        getattr(contents, _FIELDS[dtype]).extend(array.ravel().tolist())
