"""The structure of what a function returns, as JSON: so that flat tensors become the same dicts and tuples
again.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

from glowplug.train.fingerprint.errors import NoKeyError


def describe(value: Any) -> Any:
    """Return JSON for the structure of a traced function's outputs; dicts keep the order of their keys."""
    from tensorflow.python.data.ops import optional_ops
    from tensorflow.python.framework import type_spec

    if value is None:
        return None
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise NoKeyError("its result is a dict whose keys are not strings")
        return {"dict": [[key, describe(item)] for key, item in value.items()]}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        raise NoKeyError(f"its result is a {type(value).__name__}")
    if isinstance(value, (list, tuple)):
        return {"tuple" if isinstance(value, tuple) else "list": [describe(item) for item in value]}
    if isinstance(value, (optional_ops.Optional, optional_ops.OptionalSpec)):
        spec = value.element_spec if isinstance(value, optional_ops.Optional) else value._value_structure
        return {"optional": describe(spec)}
    try:
        spec = value if isinstance(value, type_spec.TypeSpec) else type_spec.type_spec_from_value(value)
    except TypeError:
        raise NoKeyError(f"its result holds a {type(value).__name__}") from None
    return {"spec": _encode_spec(spec)}


def specs(node: Any) -> Any:
    """Return the structure again, with type specifications as its leaves."""
    from tensorflow.python.data.ops import optional_ops

    if node is None:
        return None
    ((kind, content),) = node.items()
    if kind == "dict":
        return {key: specs(item) for key, item in content}
    if kind == "list":
        return [specs(item) for item in content]
    if kind == "tuple":
        return tuple(specs(item) for item in content)
    if kind == "optional":
        return optional_ops.OptionalSpec(specs(content))
    return _decode_spec(content)


def pack(structure: Any, tensors: Iterator[Any]) -> Any:
    """Return the structure with tensors as its leaves, taken from `tensors` in the order TensorFlow flattens
    them.
    """
    if structure is None:
        return None
    if isinstance(structure, dict):
        packed = {key: pack(structure[key], tensors) for key in sorted(structure)}
        return {key: packed[key] for key in structure}
    if isinstance(structure, (list, tuple)):
        return type(structure)(pack(item, tensors) for item in structure)
    return structure.from_tensors(tensors)


def count(structure: Any) -> int:
    """Return how many tensors `pack` takes."""
    if structure is None:
        return 0
    if isinstance(structure, (dict, list, tuple)):
        return sum(count(item) for item in (structure.values() if isinstance(structure, dict) else structure))
    return len(structure.flatten())


def _encode_spec(spec: Any) -> str:
    from tensorflow.python.framework import tensor
    from tensorflow.python.saved_model import nested_structure_coder

    if isinstance(spec, tensor.TensorSpec):
        spec = tensor.TensorSpec(spec.shape, spec.dtype)
    try:
        proto = nested_structure_coder.encode_structure(spec)
    except nested_structure_coder.NotEncodableError:
        raise NoKeyError(f"its result holds a {type(spec).__name__}") from None
    return base64.b64encode(proto.SerializeToString()).decode()


def _decode_spec(text: str) -> Any:
    from tensorflow.core.protobuf import struct_pb2
    from tensorflow.python.saved_model import nested_structure_coder

    return nested_structure_coder.decode_proto(struct_pb2.StructuredValue.FromString(base64.b64decode(text)))
