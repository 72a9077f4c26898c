"""Why TensorFlow traced a function again: what differs between two function types. Runs in the target.

TensorFlow is not imported here: types are told apart by their class names.
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers take it for true; importing typing would cost the target 5 ms
if TYPE_CHECKING:
    from typing import Any


TEXT_LIMIT = 600


def describe_type(kind: Any) -> str:
    """Return a short text for a trace type: `float32[8, 224]`, `3`, `(float32[], int32[])`."""
    name = type(kind).__name__
    if hasattr(kind, "dtype") and hasattr(kind, "shape"):
        dtype = getattr(kind.dtype, "name", str(kind.dtype))
        return f"{dtype}{_describe_shape(kind.shape)}"
    if name == "Literal":
        return repr(getattr(kind, "value", kind))[:80]
    if name in ("Tuple", "List", "NamedTuple"):
        return f"({', '.join(describe_type(part) for part in _parts(kind))})"
    if name == "Dict":
        mapping = getattr(kind, "mapping", {})
        return "{" + ", ".join(f"{key}: {describe_type(part)}" for key, part in mapping.items()) + "}"
    if name in ("Weakref", "Reference"):
        return "object"
    element = getattr(kind, "element_spec", getattr(kind, "_element_spec", None))
    if element is not None:
        return f"{name}({describe_specs(element)})"
    return str(kind)[:80]


def describe_specs(value: Any) -> str:
    """Return a short text for nested tensor specs."""
    if isinstance(value, (tuple, list)):
        return f"({', '.join(describe_specs(part) for part in value)})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {describe_specs(part)}" for key, part in value.items()) + "}"
    return describe_type(value) if hasattr(value, "dtype") else str(value)[:80]


def describe_signature(function_type: Any) -> str:
    """Return the parameters of a function type as text."""
    parts = [f"{name}: {describe_type(kind)}" for name, kind in _parameters(function_type).items()]
    text = ", ".join(parts)
    return text if len(text) <= TEXT_LIMIT else text[: TEXT_LIMIT - 3] + "..."


def compare(old: Any, new: Any) -> tuple[str, str]:
    """Return the reason for a new trace (see `docs/reference/profile.md`) and what differs, as text."""
    before, after = _parameters(old), _parameters(new)
    if list(before) != list(after):
        return "structure", "another set of arguments"
    for name, kind in after.items():
        reason = compare_types(before[name], kind)
        if reason:
            return reason, f"{name}: {describe_type(before[name])} -> {describe_type(kind)}"[:TEXT_LIMIT]
    return "", ""


def compare_types(old: Any, new: Any) -> str:
    """Return what differs between two trace types: empty when nothing does."""
    if old == new:
        return ""
    if type(old) is not type(new):
        return "structure"
    name = type(new).__name__
    if name == "Literal":
        return "python_value"
    if name in ("Weakref", "Reference"):
        return "object"
    if name in ("Tuple", "List", "NamedTuple", "Dict"):
        mine, other = _parts(old), _parts(new)
        if len(mine) != len(other):
            return "structure"
        return next((reason for a, b in zip(mine, other, strict=True) if (reason := compare_types(a, b))), "structure")
    if hasattr(new, "dtype") and hasattr(new, "shape"):
        return "dtype" if old.dtype != new.dtype else "shape"
    mine, other = _specs(old), _specs(new)
    if mine and len(mine) == len(other):
        return next((reason for a, b in zip(mine, other, strict=True) if (reason := compare_types(a, b))), "structure")
    return "structure"


def _parameters(function_type: Any) -> dict[str, Any]:
    return {
        name: parameter.type_constraint
        for name, parameter in function_type.parameters.items()
        if name not in getattr(function_type, "captures", {})
    }


def _parts(kind: Any) -> list[Any]:
    if hasattr(kind, "mapping"):
        return list(kind.mapping.values())
    if hasattr(kind, "components_tuple"):
        return list(kind.components_tuple.components)
    if hasattr(kind, "attributes"):
        return list(kind.attributes.components)
    return list(getattr(kind, "components", ()))


def _specs(kind: Any) -> list[Any]:
    found: list[Any] = []

    def collect(value: Any) -> None:
        if isinstance(value, (tuple, list)):
            for part in value:
                collect(part)
        elif isinstance(value, dict):
            for part in value.values():
                collect(part)
        elif value is not None:
            found.append(value)

    collect(getattr(kind, "element_spec", getattr(kind, "_element_spec", None)))
    return found


def _describe_shape(shape: Any) -> str:
    try:
        dims = shape.as_list() if hasattr(shape, "as_list") else list(shape)
    except (TypeError, ValueError):
        return "[...]"
    return f"[{', '.join('?' if dim is None else str(dim) for dim in dims)}]"
