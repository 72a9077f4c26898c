"""`tf.Example` for classify and regress: from JSON and from wire messages to serialized examples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glowplug.core.errors import RequestError

from .json_predict import read_signature_name
from .json_tensor import is_base64, json_type, parse, text_bytes
from .messages import message, serving

_INT64_LOW, _INT64_HIGH = -(1 << 63), (1 << 63) - 1


def read_json(body: bytes) -> tuple[str, Any]:
    """Return the signature's name and the `Input` message of a REST `:classify` or `:regress` body."""
    document = parse(body)
    name, made = read_signature_name(document), serving("Input")()
    if "context" in document:
        holder = made.example_list_with_context
        _fill(document["context"], holder.context)
    else:
        holder = made.example_list
    if "examples" not in document:
        raise RequestError("key 'examples' is expected and was not found")
    values = document["examples"]
    if not isinstance(values, list):
        raise RequestError("Expecting 'examples' value to be an list/array", seen=json_type(values))
    if not values:
        raise RequestError("'examples' value is an empty array")
    for value in values:
        _fill(value, holder.examples.add())
    return name, made


@dataclass(frozen=True, slots=True)
class ExamplesCall:
    """A request of `Classify`, `Regress` or `MultiInference` whose examples are a vector of strings already."""

    message: Any
    input: NDArray[Any]

    @property
    def model_spec(self) -> Any:
        """Which model is asked."""
        return self.message.model_spec

    @property
    def tasks(self) -> Any:
        """What is asked for, of a request for several things."""
        return self.message.tasks


def serialized(made: Any) -> NDArray[Any]:
    """Return the examples of an `Input`, each with the context's features, as one vector of strings."""
    kind = made.WhichOneof("kind")
    if kind is None:
        raise RequestError("Input is empty")
    holder = getattr(made, kind)
    if not holder.examples:
        raise RequestError("Input is empty")
    array = np.empty(len(holder.examples), object)
    for place, example in enumerate(holder.examples):
        if kind == "example_list_with_context":
            whole = message("tensorflow.Example")()
            whole.CopyFrom(holder.context)
            for name, feature in example.features.feature.items():
                whole.features.feature[name].CopyFrom(feature)
            example = whole  # noqa: PLW2901 - the example's own features win over the context's
        array[place] = example.SerializeToString(deterministic=True)
    return array


def _fill(value: Any, example: Any) -> None:
    if not isinstance(value, dict):
        raise RequestError(f"Example must be JSON object but got JSON {json_type(value)}")
    example.features.SetInParent()
    for name, content in value.items():
        feature = example.features.feature[name]
        feature.SetInParent()
        for item in content if isinstance(content, list) else [content]:
            _add(item, name, feature)


def _add(value: Any, name: str, feature: Any) -> None:
    if isinstance(value, bool | int):
        kind = "int64_list"
        if not _INT64_LOW <= value <= _INT64_HIGH:
            raise RequestError(f"Feature: {name} has uint64_t element. Only int64_t is supported.", seen=value)
        value = int(value)
    elif isinstance(value, float):
        kind = "float_list"
        with np.errstate(over="ignore"):
            value = float(np.float32(value))  # protobuf refuses what a float cannot hold: it becomes an infinity
    elif isinstance(value, str) or is_base64(value):
        kind, value = "bytes_list", text_bytes(value, name, None)
    else:
        raise RequestError(f"Feature: {name} has element with unexpected JSON type: {json_type(value)}")
    if feature.WhichOneof("kind") not in (None, kind):
        expected = feature.WhichOneof("kind").removesuffix("_list")
        raise RequestError(f"Unexpected element type in feature: {name} expecting type: {expected}")
    getattr(feature, kind).value.append(value)
