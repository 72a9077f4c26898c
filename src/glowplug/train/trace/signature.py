"""How a `tf.function` is called: the type of its arguments, the tensors in them, and their part of
the key.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from glowplug.train.fingerprint.errors import NoKeyError
from glowplug.train.fingerprint.walker import Walker


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of one call. `kind` is TensorFlow's own type of them, by which it decides whether to
    trace again, or the more general type of the trace that serves them.
    """

    kind: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def tensors(self) -> list[Any]:
        """Return the tensors among the arguments, in the order a traced function takes them."""
        return list(self.kind.unpack_inputs(self.kind.bind(*self.args, **self.kwargs)))


def arguments_of(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
    """Describe a call of a `tf.function` as TensorFlow would."""
    from tensorflow.python.eager.polymorphic_function import function_type_utils

    bound = function_type_utils.canonicalize_function_inputs(
        args, kwargs, function._function_type, function._default_values, function._is_pure
    )
    args, kwargs = bound.args, bound.kwargs
    signature = function.input_signature
    typed = args if signature is None else (*signature, *args[len(signature) :])
    kind, _ = function_type_utils.make_canonicalized_monomorphic_type(typed, kwargs, {}, function._function_type)
    return Arguments(kind, args, kwargs)


def examples(arguments: Arguments) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return arguments that make TensorFlow trace with just the type of these, whatever was traced before."""
    bound = arguments.kind.bind(*arguments.args, **arguments.kwargs)
    for name, parameter in arguments.kind.parameters.items():
        bound.arguments[name] = _example(parameter.type_constraint)
    return bound.args, bound.kwargs


def visit_inputs(walker: Walker, arguments: Arguments) -> None:
    """Add the types of the arguments to a key: tensors by dtype and shape, everything else by value."""
    previous = walker.stream.enter("inputs")
    for name, parameter in arguments.kind.parameters.items():
        _visit(walker, parameter.type_constraint, name)
    walker.stream.enter(previous)


def same_types(first: Any, second: Any) -> bool:
    """Whether two of TensorFlow's function types have the same parameters."""
    one, other = (
        [(name, parameter.type_constraint) for name, parameter in kind.parameters.items()] for kind in (first, second)
    )
    return one == other


def traced_shapes(concrete: Any, count: int) -> list[list[Any]]:
    """Return `[dtype, shape]` of the first `count` arguments as a function was traced with them."""
    return [_shape(tensor) for tensor in concrete.inputs[:count]]


def _example(kind: Any) -> Any:
    from tensorflow.core.function.trace_type import default_types
    from tensorflow.python.framework import type_spec

    if isinstance(kind, type_spec.TypeSpec):
        return kind
    if isinstance(kind, default_types.Tuple):
        return tuple(map(_example, kind.components))
    if isinstance(kind, default_types.List):
        return [_example(item) for item in kind.components_tuple.components]
    if isinstance(kind, default_types.Dict):
        return {key: _example(item) for key, item in kind.mapping.items()}
    if isinstance(kind, default_types.Literal):
        return kind.value
    if isinstance(kind, default_types.Weakref):
        return kind._ref()
    raise NoKeyError(f"no example of {type(kind).__name__} can be made")


def _visit(walker: Walker, kind: Any, path: str) -> None:
    from tensorflow.core.function.trace_type import default_types
    from tensorflow.python.framework import tensor, type_spec

    stream = walker.stream
    if isinstance(kind, tensor.TensorSpec):
        stream.leaf(path, "tensor", f"{kind.dtype.name}{kind.shape}")
    elif isinstance(kind, (default_types.Tuple, default_types.List)):
        items = kind.components if isinstance(kind, default_types.Tuple) else kind.components_tuple.components
        stream.emit(type(kind).__name__, b"%d" % len(items))
        for index, item in enumerate(items):
            _visit(walker, item, f"{path}[{index}]")
    elif isinstance(kind, default_types.Dict):
        stream.emit("Dict", b"%d" % len(kind.mapping))
        walker.code.reads_names = True  # data given by name is matched with the names of the inputs
        for key, item in kind.mapping.items():
            walker.visit(key, f"{path} key")
            _visit(walker, item, f"{path}[{key!r}]")
    elif isinstance(kind, default_types.Literal):
        walker.visit(kind.value, path)
    elif isinstance(kind, default_types.Weakref):
        walker.visit(kind._ref(), path)
    elif isinstance(kind, type_spec.TypeSpec):
        stream.leaf(path, type(kind).__name__, repr(kind))
        if _holds_names(getattr(kind, "_element_spec", None)):
            walker.code.reads_names = True
    else:
        walker.visit(kind, path)


def _holds_names(element: Any) -> bool:
    """Whether the elements of an iterator are given by name somewhere."""
    if isinstance(element, (tuple, list)):
        return any(map(_holds_names, element))
    return isinstance(element, dict)


def _shape(spec: Any) -> list[Any]:
    shape = spec.shape
    return [spec.dtype.name, None if shape.rank is None else shape.as_list()]
