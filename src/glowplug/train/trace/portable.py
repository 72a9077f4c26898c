"""Turns an optimised graph into functions that another process can add to its eager context.

A graph refers to outputs by number, a function by name; the functions a graph calls carry names that mean
something else in the next process, so they are renamed after the graph's content. What cannot live in another
process is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from glowplug.core.disk.digest import sha256
from glowplug.train.fingerprint.errors import NoKeyError

# They call back into Python through a token of this process.
_PYTHON_OPS = frozenset({"PyFunc", "PyFuncStateless", "EagerPyFunc"})
_DROPPED_ATTRIBUTES = ("_XlaHasReferenceVars", "_user_specified_name")
_FUNCTION_EDGES = ("_Arg", "_Retval", "_DeviceArg", "_DeviceRetval")


def to_functions(graph: Any, concrete: Any) -> list[Any]:
    """Return the functions of `graph`, the one to call last, all named after the content of the graph."""
    # What a graph does not use is not in it, but still an argument of the function.
    edges = repr(([tensor.dtype.name for tensor in concrete.inputs], sorted(concrete.function_def.control_ret.items())))
    prefix = f"glowplug_{sha256(graph.SerializeToString(deterministic=True) + edges.encode())[:32]}"
    names = {each.signature.name: f"{prefix}_{index}" for index, each in enumerate(graph.library.function)}
    library = [_renamed(each, names) for each in graph.library.function]
    signatures = {each.signature.name: each.signature for each in library}
    main = _main(graph, concrete, prefix, names, signatures)
    for function in [*library, main]:
        for node in function.node_def:
            _check(node)
    return [*library, main]


def _main(graph: Any, concrete: Any, name: str, names: Mapping[str, str], signatures: Mapping[str, Any]) -> Any:
    from tensorflow.core.framework import function_pb2

    function = function_pb2.FunctionDef()
    function.signature.name = name
    function.signature.is_stateful = True
    arguments: dict[str, str] = {}
    results: dict[int, Any] = {}
    inner = []
    for node in graph.node:
        if node.op == "_Arg":
            arguments[node.name] = f"argument_{node.attr['index'].i}"
        elif node.op == "_Retval":
            results[node.attr["index"].i] = node
        else:
            inner.append(node)
    for index, tensor in enumerate(concrete.inputs):
        function.signature.input_arg.add(name=f"argument_{index}", type=tensor.dtype.as_datatype_enum)
    refer = _references(inner, arguments, signatures, names)
    waits = {f"^{argument}" for argument in arguments}
    for node in inner:
        copy = function.node_def.add()
        copy.CopyFrom(node)
        del copy.input[:]
        # Arguments are there from the start: waiting for one means nothing, and a function cannot say it.
        copy.input.extend(refer(source) for source in node.input if source not in waits)
        _rename_calls(copy, names)
        _strip(copy)
    for index in sorted(results):
        function.signature.output_arg.add(name=f"result_{index}", type=results[index].attr["T"].type)
        function.ret[f"result_{index}"] = refer(results[index].input[0])
    for output, node_name in concrete.function_def.control_ret.items():
        function.signature.control_output.append(output)
        function.control_ret[output] = node_name
    return function


def _references(
    nodes: Iterable[Any],
    arguments: Mapping[str, str],
    signatures: Mapping[str, Any],
    names: Mapping[str, str],
) -> Callable[[str], str]:
    ports = {node.name: _output_names(node, signatures, names) for node in nodes}

    def refer(source: str) -> str:
        if source.startswith("^"):
            return source
        name, _, number = source.partition(":")
        if name in arguments:
            return arguments[name]
        return f"{name}:{ports[name][int(number or 0)]}"

    return refer


def _output_names(node: Any, signatures: Mapping[str, Any], names: Mapping[str, str]) -> list[str]:
    from tensorflow.python.framework import op_def_registry

    definition = signatures.get(names.get(node.op, "")) or op_def_registry.get(node.op)
    if definition is None:
        raise NoKeyError(f"its graph holds the unknown operation {node.op}")
    found: list[str] = []
    for argument in definition.output_arg:
        if argument.number_attr:
            count = node.attr[argument.number_attr].i
        elif argument.type_list_attr:
            count = len(node.attr[argument.type_list_attr].list.type)
        else:
            count = 1
        found += [f"{argument.name}:{index}" for index in range(count)]
    return found


def _renamed(function: Any, names: Mapping[str, str]) -> Any:
    from tensorflow.core.framework import function_pb2

    copy = function_pb2.FunctionDef()
    copy.CopyFrom(function)
    copy.signature.name = names[function.signature.name]
    for node in copy.node_def:
        _rename_calls(node, names)
        _strip(node)
    return copy


def _rename_calls(node: Any, names: Mapping[str, str]) -> None:
    if node.op in names:
        node.op = names[node.op]
    for value in node.attr.values():
        if value.HasField("func"):
            value.func.name = names.get(value.func.name, value.func.name)
        for called in value.list.func:
            called.name = names.get(called.name, called.name)


def _strip(node: Any) -> None:
    node.ClearField("experimental_debug_info")
    for name in _DROPPED_ATTRIBUTES:
        node.attr.pop(name, None)


def _check(node: Any) -> None:
    if node.op in _PYTHON_OPS:
        raise NoKeyError("it calls back into Python (py_function)")
    if node.op in _FUNCTION_EDGES:
        raise NoKeyError(f"its graph holds a stray {node.op}")
    if "shared_name" in node.attr and not node.op.startswith("Anonymous"):
        raise NoKeyError(f"its graph makes a named resource ({node.op})")
