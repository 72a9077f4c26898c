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

    return isinstance(value, (KerasVariable, TensorFlowVariable))


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
    return f"{resource.dtype.name}[{shape}] {' '.join(flags)}"
