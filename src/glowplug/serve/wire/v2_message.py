"""The messages of Open Inference `ModelInfer`: inputs to arrays, outputs into an answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from glowplug.core.errors import RequestError
from glowplug.core.protobuf_wire import BYTES

from .array_types import dtype_name
from .calls import Arrays
from .field_scan import Field, FieldScan, TooManyFieldsError
from .limits import Limits
from .v2_json import SEQUENCE, SHARED_MEMORY, SIGNATURE, check_output_parameters, no_sequences, no_shared_memory
from .v2_tensor import (
    fill_contents,
    from_contents,
    from_raw,
    has_contents,
    input_dtype,
    output_datatype,
    shape_of,
    to_raw,
)

_INPUTS, _RAW, _CONTENTS = 5, 7, 5  # of ModelInferRequest; of a tensor
_COPIED = frozenset({6, 7})  # fp32_contents, fp64_contents
_QUICK_ELEMENTS, _QUICK_BYTES, _QUICK_STRINGS = 1 << 14, 1 << 15, 1 << 10


@dataclass(frozen=True, slots=True)
class InferCall:
    """A `ModelInferRequest` whose tensors are arrays. `message` need not have them any more."""

    message: Any
    inputs: dict[str, NDArray[Any]]
    raw: bool  # they came as bytes, and so does the answer

    @property
    def model_name(self) -> str:
        """The model that is asked."""
        return str(self.message.model_name)


def read_inputs(request: Any, limits: Limits) -> dict[str, NDArray[Any]]:
    """Return the inputs of a `ModelInferRequest`."""
    raw = request.raw_input_contents
    if raw and len(raw) != len(request.inputs):
        raise RequestError(
            "raw_input_contents must have an entry for each input",
            seen=f"{len(raw)} for {len(request.inputs)} inputs",
        )
    arrays = dict[str, NDArray[Any]]()
    for place, one in enumerate(request.inputs):
        name = one.name
        if name in arrays:
            raise RequestError("two inputs have the same name", seen=name[:200])
        dtype = input_dtype(one.datatype, name)
        shape = shape_of(name, dtype, one.shape, limits)
        if SHARED_MEMORY in one.parameters:
            raise no_shared_memory("input", name)
        if not raw:
            arrays[name] = from_contents(one.contents, dtype, shape, name)
        elif one.HasField("contents"):
            raise RequestError(f"input {name!r} is sent twice", seen="contents and raw_input_contents")
        else:
            arrays[name] = from_raw(raw[place], dtype, shape, name)
    return arrays


def is_quickly_parsed(data: bytes) -> bool:
    """Say whether a `ModelInferRequest` is parsed in no time: few fields, and few bytes looked at one by one."""
    if len(data) <= _QUICK_BYTES:
        return True
    scan, slow = FieldScan(data), 0
    try:
        for field in scan.fields():
            if (field.number, field.kind) == (_INPUTS, BYTES):
                slow += _slow_bytes(scan, field)
            elif field.number != _RAW:
                slow += field.size
    except TooManyFieldsError:
        return False
    except ValueError:
        return True  # it is quick to refuse
    return slow <= _QUICK_BYTES


def _slow_bytes(scan: FieldScan, tensor: Field) -> int:
    slow = 0
    for field in scan.fields(tensor):
        if (field.number, field.kind) != (_CONTENTS, BYTES):
            slow += field.size
            continue
        slow += sum(one.size for one in scan.fields(field) if one.number not in _COPIED)
    return slow


def is_quick(request: Any) -> bool:
    """Say whether the inputs can be read where others wait: few elements that have to be looked at one by one."""
    strings = [place for place, one in enumerate(request.inputs) if one.datatype == "BYTES"]
    raw = request.raw_input_contents
    if raw:
        return sum(len(raw[place]) for place in strings if place < len(raw)) <= _QUICK_BYTES
    return sum(_looked_at(one.contents) for one in request.inputs) <= _QUICK_ELEMENTS


def _looked_at(contents: Any) -> int:
    return sum(
        map(
            len,
            (
                contents.bool_contents,
                contents.int_contents,
                contents.int64_contents,
                contents.uint_contents,
                contents.uint64_contents,
                contents.bytes_contents,
            ),
        )
    )


def signature_name(request: Any) -> str:
    """Return the signature that a request names, empty where it names none."""
    if SEQUENCE in request.parameters:
        raise no_sequences()
    if SIGNATURE not in request.parameters:
        return ""
    parameter = request.parameters[SIGNATURE]
    if parameter.WhichOneof("parameter_choice") != "string_param":
        raise RequestError(f"parameter {SIGNATURE!r} must be a string", seen=parameter.WhichOneof("parameter_choice"))
    return str(parameter.string_param)


def wanted_outputs(request: Any) -> list[str]:
    """Return the names of the outputs that a request asks for."""
    for one in request.outputs:
        check_output_parameters(one.name, list(one.parameters))
    return [one.name for one in request.outputs]


def is_quickly_written(outputs: Arrays) -> bool:
    """Say whether outputs are written in no time; large ones are bytes that are copied, unless they are strings."""
    return all(dtype_name(array) != "string" or array.size <= _QUICK_STRINGS for array in outputs.values())


def fill_outputs(response: Any, outputs: Arrays, *, raw: bool) -> None:
    """Write outputs into an empty `ModelInferResponse`, raw or in typed fields: all of them in one way."""
    raw = raw or any(not has_contents(dtype_name(array)) or array.size > _QUICK_ELEMENTS for array in outputs.values())
    for name, array in outputs.items():
        tensor = response.outputs.add(name=name, datatype=output_datatype(array, name), shape=array.shape)
        if raw:
            response.raw_output_contents.append(to_raw(array))
        else:
            fill_contents(tensor.contents, array)
