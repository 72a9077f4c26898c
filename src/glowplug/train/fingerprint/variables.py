"""Variables, Keras' and TensorFlow's: what a key says of them, and the handle a restored graph is
bound to.
"""

from __future__ import annotations

from typing import Any

_USUAL = {
    "aggregation": "none",
    "synchronization": "auto",
    "overwrite_with_gradient": "false",
    "_autocast": "true",
}


def is_variable(value: object) -> bool:
    """Whether `value` is a Keras or a TensorFlow variable."""
    from keras.src.backend import Variable as KerasVariable
    from tensorflow.python.ops.variables import Variable as TensorFlowVariable

    return issubclass(type(value), (KerasVariable, TensorFlowVariable))


def resource_of(variable: Any) -> Any:
    """Return the TensorFlow resource variable behind `variable`, or None when there is no single one yet."""
    from keras.src.backend import Variable as KerasVariable
    from tensorflow.python.ops.resource_variable_ops import BaseResourceVariable

    value = variable._value if isinstance(variable, KerasVariable) else variable
    return value if isinstance(value, BaseResourceVariable) else None


def variable_spec(variable: Any) -> str:
    """Describe a variable without its value or its name."""
    from .errors import NoKeyError

    resource = resource_of(variable)
    if resource is None:
        raise NoKeyError(f"the variable {variable.name} is not a plain resource variable")
    shape = ", ".join("?" if n is None else str(n) for n in resource.shape)
    flags = ["trainable" if variable.trainable else "fixed"]
    for name, usual in _USUAL.items():
        value = str(getattr(variable, name, usual)).rpartition(".")[2].lower()
        flags += [f"{name}={value}"] if value != usual else []
    device = resource.device.rpartition("/device:")[2]
    return f"{resource.dtype.name}[{shape}] {device} {' '.join(flags)}"


# What the two kinds of variables keep of themselves: described by `variable_spec`, or a name, or a value.
_OWN_OF_KERAS = frozenset(
    [
        "_name",
        "_path",
        "_shape",
        "_initializer",
        "_trainable",
        "_autocast",
        "_aggregation",
        "_synchronization",
        "_layout",
        "_overwrite_with_gradient",
        "_dtype",
        "_value",
        "_ndim",
    ]
)
_OWN_OF_TENSORFLOW = frozenset(
    [
        "_in_graph_mode",
        "_trainable",
        "_synchronization",
        "_aggregation",
        "_save_slice_info",
        "_initial_value",
        "_initializer_op",
        "_is_initialized_op",
        "_graph_element",
        "_caching_device",
        "_cached_value",
        "_distribute_strategy",
        "_graph_key",
        "_shape",
        "_dtype",
        "_handle",
        "_unique_id",
        "_handle_name",
        "_cached_shape_as_list",
        "_validate_shape",
        "_xla_sharding",
        "_variable_read",
        "_lifted_initializer_graph",
        "_parent_op",
        "_glowplug_read_early",  # of variables that were loaded without being initialised first
        "_glowplug_unset",
    ]
)


def variable_attributes(variable: Any) -> list[tuple[str, Any]]:
    """Return what else a variable has, in a fixed order: constraint, regularizer, and whatever was put on it."""
    from keras.src.backend import Variable as KerasVariable

    from glowplug.train.fingerprint.stock.trusted import is_stock_module

    from .attributes import attributes_of

    found = attributes_of(variable)[1]
    if not issubclass(type(variable), KerasVariable):
        return [(name, found[name]) for name in sorted(found.keys() - _OWN_OF_TENSORFLOW)]
    inner = variable._value
    return [
        *((name, found[name]) for name in sorted(found.keys() - _OWN_OF_KERAS)),
        *([] if is_stock_module(type(inner).__module__) else [("type of _value", type(inner))]),
        *((f"_value.{name}", value) for name, value in variable_attributes(inner)),
    ]
