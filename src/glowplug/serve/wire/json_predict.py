"""The bodies of REST `:predict`: row form (`instances`, `predictions`) and columnar form (`inputs`, `outputs`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from numpy.typing import NDArray

from glowplug.core.errors import RequestError
from glowplug.core.manifest import Signature

from .calls import Arrays
from .json_tensor import dumps, has_words, is_base64, json_type, parse, to_array, to_json
from .limits import Limits

Form = Literal["row", "columnar"]


@dataclass(frozen=True, slots=True)
class Body:
    """A parsed request: its signature's name as written, and the values, not yet arrays (`words`: see `has_words`)."""

    signature: str
    form: Form
    values: Any
    words: bool = True


def read_body(body: bytes) -> Body:
    """Parse the body of a request."""
    document = parse(body)
    signature = read_signature_name(document)
    form: Form
    if "instances" in document and "inputs" in document:
        raise RequestError("JSON Value: Not formatted correctly expecting only one of 'inputs' or 'instances' keys")
    if "instances" in document:
        form, values = "row", document["instances"]
        if not isinstance(values, list):
            raise RequestError("Expecting 'instances' to be an list/array", seen=json_type(values))
        if not values:
            raise RequestError("No values in 'instances' array")
    elif "inputs" in document:
        form, values = "columnar", document["inputs"]
    else:
        raise RequestError("Missing 'inputs' or 'instances' key")
    return Body(signature, form, values, has_words(body))


def read_signature_name(document: dict[str, Any]) -> str:
    """Return the `signature_name` of a request, empty where there is none."""
    name = document.get("signature_name", "")
    if not isinstance(name, str):
        raise RequestError(f"Not formatted correctly ({json_type(name)}). 'signature_name' key must be a string value.")
    return name


def read_inputs(body: Body, signature: Signature, limits: Limits) -> dict[str, NDArray[Any]]:
    """Return the arrays of a request for the signature it names."""
    if not signature.inputs:
        raise RequestError("the signature has no inputs", seen=body.signature or "DEFAULT")
    columns = _rows(body.values, signature) if body.form == "row" else _columns(body.values, signature)
    return {
        name: to_array(columns[name], port.spec, name, limits, words=body.words)
        for name, port in signature.inputs.items()
    }


def _is_object(value: Any) -> bool:
    return isinstance(value, dict) and not is_base64(value)


def _rows(rows: list[Any], signature: Signature) -> dict[str, Any]:
    names = list(signature.inputs)
    if not _is_object(rows[0]):
        if len(names) > 1:
            raise RequestError(
                "instances is a plain list, but expecting list of objects as multiple input tensors required",
                seen=f"inputs {', '.join(names)}",
            )
        for place, row in enumerate(rows):
            if _is_object(row):
                raise RequestError(f"Expecting value/list but got object at item {place} of input list")
        return {names[0]: rows}
    wanted = set(names)
    for place, row in enumerate(rows):
        if not _is_object(row):
            raise RequestError(f"Expecting object but got list at item {place} of input list")
        if set(row) != wanted:
            raise RequestError(
                f"Failed to process element: {place} of 'instances' list. JSON object keys must be equal to: "
                f"{','.join(names)}",
                seen=f"keys {','.join(map(str, row))[:200]}",
            )
    return {name: [row[name] for row in rows] for name in names}


def _columns(values: Any, signature: Signature) -> dict[str, Any]:
    names = list(signature.inputs)
    if not _is_object(values):
        if len(names) > 1:
            raise RequestError(
                "inputs is a plain value/list, but expecting an object as multiple input tensors required",
                seen=f"inputs {', '.join(names)}",
            )
        return {names[0]: values}
    for name in names:
        if name not in values:
            raise RequestError(f"Missing named input: {name} in 'inputs' object.")
    return dict(values)


def write_answer(form: Form, outputs: Arrays) -> bytes:
    """Return the body of an answer. A single output stands without its name."""
    if not outputs:
        raise RequestError("Cannot convert empty tensor map to JSON")
    if form == "columnar":
        values = {name: to_json(array, name) for name, array in outputs.items()}
        return dumps({"outputs": values if len(values) > 1 else next(iter(values.values()))})
    batch = _batch_size(outputs)
    columns = {name: to_json(array, name) for name, array in outputs.items()}
    if len(columns) == 1:
        return dumps({"predictions": next(iter(columns.values()))})
    return dumps({"predictions": [{name: column[row] for name, column in columns.items()} for row in range(batch)]})


def _batch_size(outputs: Arrays) -> int:
    batch: int | None = None
    for name, array in outputs.items():
        if not array.ndim:
            raise RequestError(f"Tensor name: {name} has no shape information ", remedy="use the columnar form")
        if batch is not None and array.shape[0] != batch:
            raise RequestError(
                f"Tensor name: {name} has inconsistent batch size: {array.shape[0]} expecting: {batch}",
                remedy="use the columnar form",
            )
        batch = int(array.shape[0])
    return batch or 0
