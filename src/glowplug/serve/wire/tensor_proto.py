"""`TensorProto` to arrays and back, with TensorFlow's own reading of short and of typed fields."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from glowplug.core.dtypes import BY_CODE, BY_NAME, numpy_dtype
from glowplug.core.errors import RequestError
from glowplug.core.protobuf_wire import bytes_field, read_varint

from .limits import Limits, checked_shape
from .messages import message

# dtype -> the typed field that carries its elements. Halves travel as their bits, small integers as int32.
_FIELDS = {
    "float32": "float_val",
    "float64": "double_val",
    "int32": "int_val",
    "uint8": "int_val",
    "int16": "int_val",
    "int8": "int_val",
    "uint16": "int_val",
    "complex64": "scomplex_val",
    "int64": "int64_val",
    "bool": "bool_val",
    "bfloat16": "half_val",
    "float16": "half_val",
    "complex128": "dcomplex_val",
    "uint32": "uint32_val",
    "uint64": "uint64_val",
    "int4": "int_val",
    "uint4": "int_val",
}
_BITS = frozenset({"bfloat16", "float16"})
# Fields of fixed-width elements can be written from an array's bytes: the field's number, the type of one element.
_FIXED = {
    "float32": (5, "<f4"),
    "float64": (6, "<f8"),
    "complex64": (9, "<f4"),
    "complex128": (12, "<f8"),
}
_FILLED_FREE, _FILLED_TIMES = 1 << 14, 4
STRING_BYTES = 64  # what an element takes here at least: a few bytes of shape must not become gigabytes of objects


def decode(proto: Any, name: str, limits: Limits) -> NDArray[Any]:
    """Return the array of a `TensorProto`; `name` is the input that messages speak of."""
    dtype = BY_CODE.get(proto.dtype)
    if dtype is None:
        raise RequestError(f"input {name!r} has a type that this server does not take", seen=f"DataType {proto.dtype}")
    if proto.tensor_shape.unknown_rank:
        raise RequestError(f"input {name!r} has no shape", seen="unknown rank")
    itemsize = dtype.itemsize or STRING_BYTES
    shape = checked_shape(name, [dim.size for dim in proto.tensor_shape.dim], itemsize, limits)
    count = 1
    for size in shape:
        count *= size
    if dtype.name == "string":
        if not proto.tensor_content:
            _check_filling(name, count, len(proto.string_val), itemsize, limits)
        return _decode_strings(proto, name, count).reshape(shape)
    wanted = numpy_dtype(dtype.name)
    content = proto.tensor_content
    if content:
        if len(content) != count * dtype.itemsize:
            raise RequestError(
                f"the tensor_content of input {name!r} does not fit its shape",
                seen=f"{len(content)} bytes for {dtype.name}{list(shape)}",
                remedy=f"send {count * dtype.itemsize} bytes",
            )
        return from_content(content, dtype.name, wanted).reshape(shape)
    values = _decode_field(proto, dtype.name, wanted, name)
    _check_filling(name, count, len(values), itemsize, limits)
    if len(values) < 2 and count > len(values):  # a view: it becomes as large as it says when it is sent to a worker
        return np.broadcast_to(values[0] if len(values) else np.zeros((), wanted), shape)
    return _filled(values, count, wanted).reshape(shape)


def from_content(content: bytes | memoryview, dtype: str, wanted: np.dtype[Any]) -> NDArray[Any]:
    """Return the elements of raw bytes. Compiled code may assume a bool of 0 or 1, and four bits with none above."""
    if dtype == "bool":
        return np.frombuffer(content, np.uint8).astype(wanted)
    if dtype in ("int4", "uint4"):
        return np.bitwise_and(np.frombuffer(content, np.uint8), 0x0F).view(wanted)
    return np.frombuffer(content, wanted)


def _decode_field(proto: Any, dtype: str, wanted: np.dtype[Any], name: str) -> NDArray[Any]:
    if dtype.startswith("float8"):
        return np.frombuffer(proto.float8_val, wanted)
    if dtype in _FIXED:
        return _decode_fixed(proto, dtype, wanted, name)
    values = getattr(proto, _FIELDS[dtype])
    if dtype in _BITS:
        return np.fromiter(values, np.int64, len(values)).astype(np.uint16).view(wanted)  # as TensorFlow: the low bits
    if dtype in ("int4", "uint4"):
        return np.fromiter(values, np.int32, len(values)).astype(wanted)
    return np.fromiter(values, np.int64 if _FIELDS[dtype] == "int_val" else wanted, len(values)).astype(wanted)


def _decode_fixed(proto: Any, dtype: str, wanted: np.dtype[Any], name: str) -> NDArray[Any]:
    """Return the elements of a field that is fixed-width on the wire, from its bytes: no loop over the elements.

    protobuf gives no access to the memory of such a field, but writes it again as fast as it copies.
    """
    part = _FIXED[dtype][1]
    alone = message("tensorflow.TensorProto")()
    getattr(alone, _FIELDS[dtype]).MergeFrom(getattr(proto, _FIELDS[dtype]))
    data = alone.SerializeToString()
    length = read_varint(data, 1, len(data))[0] if data else 0  # one packed field, whose tag takes one byte
    values = np.frombuffer(data, part, offset=len(data) - length)
    if len(values) * values.itemsize % wanted.itemsize:
        raise RequestError(f"input {name!r} has half a complex number", seen=f"{len(values)} parts")
    return values.view(wanted)


def _check_filling(name: str, count: int, given: int, itemsize: int, limits: Limits) -> None:
    """Refuse a few bytes that stand for very many: a tensor that was sent has cost its sender as much as us.

    One number may fill a large shape, since it is kept as one; several and strings fill a few times their own size.
    """
    few = _FILLED_FREE + _FILLED_TIMES * given
    bound = limits.request_bytes // max(itemsize, 1)
    if given < count > (bound if given < 2 and itemsize != STRING_BYTES else min(bound, few)):
        raise RequestError(
            f"input {name!r} has fewer elements than its shape, and is too large to be filled up",
            seen=f"{given} of {count} elements",
            remedy="send all of them",
        )


def is_copied(dtype: str) -> bool:
    """Say whether tensors of a type are written as they lie in memory, whatever their size."""
    return dtype in _FIXED or dtype.startswith("float8")


def _filled(values: NDArray[Any], count: int, wanted: np.dtype[Any]) -> NDArray[Any]:
    """Return `count` elements: the last one given is repeated, none at all means zeros, too many are cut."""
    if len(values) >= count:
        return values[:count]
    array = np.zeros(count, wanted)
    array[: len(values)] = values
    if len(values):
        array[len(values) :] = values[-1]
    return array


def _decode_strings(proto: Any, name: str, count: int) -> NDArray[Any]:
    values = list(proto.string_val)
    if proto.tensor_content:
        values = _split_strings(proto.tensor_content, count, name)
    array = np.empty(count, object)
    for place, value in enumerate(values[:count]):
        array[place] = value
    array[len(values) :] = values[-1] if values else b""
    return array


def _split_strings(content: bytes, count: int, name: str) -> list[bytes]:
    """Read TensorFlow's packed form: the lengths as varints, then the strings one after the other."""
    lengths, position = [], 0
    refused = RequestError(f"the tensor_content of input {name!r} does not hold {count} strings")
    if count > len(content):
        raise refused
    for _ in range(count):
        try:
            length, position = read_varint(content, position, len(content))
        except ValueError:
            raise refused from None
        lengths.append(length)
    if position + sum(lengths) != len(content):
        raise refused
    strings = []
    for length in lengths:
        strings.append(content[position : position + length])
        position += length
    return strings


def encode(array: NDArray[Any], dtype: str) -> Any:
    """Return the `TensorProto` of an array, its elements in the typed field, as TensorFlow Serving answers."""
    proto = message("tensorflow.TensorProto")()
    fill(proto, array, dtype)
    return proto


def fill(proto: Any, array: NDArray[Any], dtype: str) -> None:
    """Write an array into an empty `TensorProto`, as `encode` does."""
    proto.dtype = BY_NAME[dtype].code
    for size in array.shape:
        proto.tensor_shape.dim.add(size=size)
    if not array.ndim:
        proto.tensor_shape.SetInParent()
    if dtype == "string":
        proto.string_val.extend(item.encode() if isinstance(item, str) else bytes(item) for item in array.flat)
    elif dtype in _FIXED:
        number, part = _FIXED[dtype]
        data = np.ascontiguousarray(array).tobytes() if array.dtype.byteorder != ">" else array.astype(part).tobytes()
        if data:  # far faster than element by element, and the same bytes
            proto.MergeFromString(bytes_field(number, data))
    elif dtype in _BITS:
        proto.half_val.extend(np.ascontiguousarray(array).view(np.uint16).ravel().tolist())
    elif dtype.startswith("float8"):
        proto.float8_val = np.ascontiguousarray(array).tobytes()
    else:
        items = array.astype(np.int32) if dtype in ("int4", "uint4") else array
        getattr(proto, _FIELDS[dtype]).extend(items.ravel().tolist())
