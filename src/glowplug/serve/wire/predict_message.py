"""The messages of `Predict`: which can be read and written where others wait, and the reading and writing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from glowplug.core.dtypes import BY_NAME
from glowplug.core.protobuf_wire import BYTES

from .array_types import dtype_name
from .calls import Arrays
from .field_scan import Field, FieldScan, TooManyFieldsError
from .limits import Limits
from .messages import serving
from .tensor_proto import decode, fill, is_copied

_QUICK_BYTES, _QUICK_ELEMENTS, _QUICK_STRINGS = 1 << 15, 1 << 14, 1 << 10
_INPUTS, _VALUE = 2, 2  # of PredictRequest; of an entry of a map
_DTYPE, _CONTENT = 1, 4  # of TensorProto
_COPIED = frozenset({_CONTENT, 5, 6, 9, 12, 18})  # its fields of fixed width, which are read without a loop
_STRING = BY_NAME["string"].code


@dataclass(frozen=True, slots=True)
class PredictCall:
    """A `PredictRequest` whose tensors are arrays."""

    model_spec: Any
    inputs: dict[str, NDArray[Any]]
    wanted: list[str]


def is_quick(data: bytes) -> bool:
    """Say whether a request is parsed in no time: few fields, and few bytes that are looked at one by one.

    What is no message is quick to refuse.
    """
    if len(data) <= _QUICK_BYTES:
        return True
    try:
        return _slow_bytes(FieldScan(data)) <= _QUICK_BYTES
    except TooManyFieldsError:
        return False
    except ValueError:
        return True


def _slow_bytes(scan: FieldScan) -> int:
    slow = 0
    for field in scan.fields():
        if (field.number, field.kind) != (_INPUTS, BYTES):
            slow += field.size
            continue
        for part in scan.fields(field):
            slow += _slow_bytes_of_tensor(scan, part) if (part.number, part.kind) == (_VALUE, BYTES) else part.size
    return slow


def _slow_bytes_of_tensor(scan: FieldScan, tensor: Field) -> int:
    slow = content = dtype = 0
    for field in scan.fields(tensor):
        if field.number == _DTYPE:
            dtype = field.value
        elif field.number == _CONTENT:
            content += field.size
        elif field.number not in _COPIED:
            slow += field.size
    return slow + content if dtype == _STRING else slow


def unfolds(request: Any) -> bool:
    """Say whether a small `PredictRequest` stands for very many strings: the last one is repeated to fill the shape."""
    return any(
        proto.dtype == _STRING and math.prod(dim.size for dim in proto.tensor_shape.dim) > _QUICK_STRINGS
        for proto in request.inputs.values()
    )


def read(request: Any, limits: Limits) -> PredictCall:
    """Return the call of a `PredictRequest`."""
    inputs = {name: decode(proto, name, limits) for name, proto in request.inputs.items()}
    return PredictCall(request.model_spec, inputs, list(request.output_filter))


def is_quickly_written(outputs: Arrays) -> bool:
    """Say whether outputs are written in no time: bytes that are copied, or few elements."""
    return all(
        array.size <= (_QUICK_STRINGS if dtype_name(array) == "string" else _QUICK_ELEMENTS)
        or is_copied(dtype_name(array))
        for array in outputs.values()
    )


def write(outputs: Arrays) -> Any:
    """Return a `PredictResponse` of the outputs alone."""
    response = serving("PredictResponse")()
    for name, array in outputs.items():
        fill(response.outputs[name], array, dtype_name(array))
    return response
