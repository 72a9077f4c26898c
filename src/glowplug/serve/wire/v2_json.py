"""The bodies of Open Inference `infer` over HTTP: a JSON document, and behind it the bytes of tensors that say so."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glowplug.core.errors import RequestError
from glowplug.core.manifest import TensorSpec

from .calls import Arrays
from .json_tensor import dumps, json_type, parse, to_array, to_json
from .limits import Limits
from .v2_tensor import from_raw, input_dtype, output_datatype, shape_of, to_raw

SIGNATURE = "signature_name"  # the parameter of a request that names a signature
SHARED_MEMORY = "shared_memory_region"
SEQUENCE = "sequence_id"  # the one that makes it part of a sequence
_MAX_ID = 1 << 10


@dataclass(frozen=True, slots=True)
class InferHead:
    """What a request asks for, beside its inputs. No outputs are all outputs; `binary` are those wanted as bytes."""

    id: str
    signature: str
    outputs: tuple[str, ...]
    binary: tuple[str, ...]
    all_binary: bool


@dataclass(frozen=True, slots=True)
class _Input:
    name: str
    dtype: str
    shape: tuple[int, ...]
    data: Any  # as parsed; `None` where the bytes are behind the document
    size: int  # of those bytes
    base64: bool


@dataclass(frozen=True, slots=True)
class InferBody:
    """A parsed document: the head, and the inputs, not yet arrays (`words`: see `_has_words`)."""

    head: InferHead
    inputs: tuple[_Input, ...]
    words: bool = True

    def string_bytes(self) -> int:
        """Return how many bytes behind the document have to be cut into strings."""
        return sum(one.size for one in self.inputs if one.dtype == "string")


def no_sequences() -> RequestError:
    """Return what to say to a request that counts on state from the one before it."""
    return RequestError(f"sequences are not offered: parameter {SEQUENCE!r}", remedy="send the request without it")


def check_output_parameters(name: str, given: Collection[str]) -> None:
    """Refuse an output that is wanted in a way that is not offered; `given` are its parameters."""
    if "classification" in given:
        raise RequestError(f"output {name!r}: classification is not offered", remedy="ask for the scores")
    if SHARED_MEMORY in given:
        raise no_shared_memory("output", name)


def no_shared_memory(kind: str, name: str) -> RequestError:
    """Return what to say to a request whose tensors lie elsewhere."""
    return RequestError(
        f"{kind} {name!r}: shared memory is not offered: parameter {SHARED_MEMORY!r}",
        remedy="send tensors within the request",
    )


def read_document(text: bytes, limits: Limits) -> InferBody:
    """Parse the JSON part of a body."""
    document = parse(text)
    inputs = tuple(_input(one, limits) for one in _objects(document, "inputs", needed=True))
    names = [one.name for one in inputs]
    if len(set(names)) != len(names):
        raise RequestError("two inputs have the same name", seen=", ".join(names)[:200])
    parameters = _parameters(document, "the request")
    if parameters.get(SEQUENCE):
        raise no_sequences()
    all_binary = _flag(parameters, "binary_data_output")
    outputs, binary = list[str](), list[str]()
    for one in _objects(document, "outputs", needed=False):
        name = _name(one, "an output")
        given = _parameters(one, f"output {name!r}")
        check_output_parameters(name, [key for key, value in given.items() if value])
        outputs.append(name)
        if _flag(given, "binary_data", all_binary):
            binary.append(name)
    signature = parameters.get(SIGNATURE, "")
    if not isinstance(signature, str):
        raise RequestError(f"parameter {SIGNATURE!r} must be a string", seen=json_type(signature))
    identity = document.get("id", "")
    if not isinstance(identity, str) or len(identity) > _MAX_ID:
        raise RequestError(f"'id' must be a string of at most {_MAX_ID} characters", seen=json_type(identity))
    head = InferHead(identity, signature, tuple(outputs), tuple(binary), all_binary)
    return InferBody(head, inputs, _has_words(text, names))


def _has_words(text: bytes, names: list[str]) -> bool:
    """Say whether a document may hold `true`, `false` or `null`: each has a letter that is then not one of a name's."""
    known = "".join(names).encode(errors="replace")
    return b"\\" in text or any(text.count(letter) != known.count(letter) for letter in (b"r", b"l"))


def _objects(document: dict[str, Any], key: str, *, needed: bool) -> list[dict[str, Any]]:
    values = document.get(key)
    if values is None and not needed:
        return []
    if not isinstance(values, list) or not all(isinstance(one, dict) for one in values):
        raise RequestError(f"{key!r} must be a list of objects", seen=json_type(values))
    return values


def _parameters(document: dict[str, Any], where: str) -> dict[str, Any]:
    found = document.get("parameters")
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise RequestError(f"the parameters of {where} must be an object", seen=json_type(found))
    return found


def _flag(parameters: dict[str, Any], name: str, default: bool = False) -> bool:
    value = parameters.get(name, default)
    if not isinstance(value, bool):
        raise RequestError(f"parameter {name!r} must be true or false", seen=json_type(value))
    return value


def _name(one: dict[str, Any], where: str) -> str:
    name = one.get("name")
    if not isinstance(name, str) or not name:
        raise RequestError(f"{where} has no 'name'", seen=json_type(name))
    return name


def _input(one: dict[str, Any], limits: Limits) -> _Input:
    name = _name(one, "an input")
    dtype = input_dtype(one.get("datatype"), name)
    sizes = one.get("shape")
    if not isinstance(sizes, list) or not all(type(size) is int for size in sizes):
        raise RequestError(f"input {name!r} must have a 'shape', a list of integers", seen=json_type(sizes))
    shape = shape_of(name, dtype, sizes, limits)
    parameters = _parameters(one, f"input {name!r}")
    if SHARED_MEMORY in parameters:
        raise no_shared_memory("input", name)
    size, data = parameters.get("binary_data_size"), one.get("data")
    if (size is None) == (data is None):
        raise RequestError(
            f"input {name!r} must have either 'data' or the parameter 'binary_data_size'",
            seen="both" if data is not None else "neither",
        )
    if size is not None and (type(size) is not int or size < 0):
        raise RequestError(f"input {name!r}: 'binary_data_size' must be a number of bytes", seen=json_type(size))
    return _Input(name, dtype, shape, data, size or 0, parameters.get("content_type") == "base64")


def read_arrays(body: InferBody, binary: memoryview, limits: Limits) -> dict[str, NDArray[Any]]:
    """Return the inputs of a request; `binary` is what follows the document."""
    arrays, position = dict[str, NDArray[Any]](), 0
    for one in body.inputs:
        if one.data is None:
            end = position + one.size
            if end > len(binary):
                raise RequestError(
                    f"the bytes of input {one.name!r} are not all there",
                    seen=f"{len(binary)} bytes behind the document",
                    remedy=f"send {end}",
                )
            arrays[one.name] = from_raw(binary[position:end], one.dtype, one.shape, one.name)
            position = end
        else:
            arrays[one.name] = _from_data(one, limits, words=body.words)
    if position != len(binary):
        raise RequestError("more bytes follow the document than the inputs name", seen=len(binary) - position)
    return arrays


def _from_data(one: _Input, limits: Limits, *, words: bool) -> NDArray[Any]:
    """Return the array of JSON values, nested as the shape is or flat."""
    array = to_array(one.data, TensorSpec(one.dtype, one.shape), one.name, limits, words=words)
    if array.size != math.prod(one.shape):
        raise RequestError(
            f"the data of input {one.name!r} do not fit its shape", seen=f"{array.size} elements for {list(one.shape)}"
        )
    if one.base64 and one.dtype == "string":
        try:
            array[...] = np.frompyfunc(lambda text: base64.b64decode(text, validate=True), 1, 1)(array)
        except binascii.Error:
            raise RequestError(f"input {one.name!r}: unable to base64 decode") from None
    return array.reshape(one.shape)


def wants_bytes(head: InferHead, name: str) -> bool:
    """Say whether an output is to be answered as bytes."""
    return name in head.binary if head.outputs else head.all_binary


def write_answer(
    model: str, version: str, identity: str, outputs: Arrays, binary: Collection[str]
) -> tuple[int, list[bytes]]:
    """Return the body of an answer in pieces, and the length of its document where bytes follow, else 0."""
    described, behind = list[dict[str, Any]](), list[bytes]()
    for name, array in outputs.items():
        entry: dict[str, Any] = {
            "name": name,
            "datatype": output_datatype(array, name),
            "shape": list(array.shape),
        }
        if name in binary:
            behind.append(to_raw(array))
            entry["parameters"] = {"binary_data_size": len(behind[-1])}
        else:
            entry["data"] = _texts(array, name) if array.dtype == object else to_json(array.ravel(), name)
        described.append(entry)
    document: dict[str, Any] = {"model_name": model, "model_version": version, "outputs": described}
    if identity:
        document["id"] = identity
    text = dumps(document)
    return (len(text) if behind else 0), [text, *behind]


def _texts(array: NDArray[Any], name: str) -> list[str]:
    try:
        return [item if isinstance(item, str) else bytes(item).decode() for item in array.flat]
    except UnicodeDecodeError:
        raise RequestError(
            f"output {name!r} holds bytes that are not UTF-8, which JSON cannot hold",
            remedy="ask for it with the parameter 'binary_data'",
        ) from None
