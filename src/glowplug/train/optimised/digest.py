"""The digest of a traced function: its graph is the program, so equal digests mean the same computation.

Everything of the graph counts, names of nodes included. Only what numbers the functions of a process is left out: the
names of the functions themselves, which are numbered here in the order of their calls, the names of their arguments,
which go by position, and attributes that repeat them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

# They name functions of this process, for gradients that are taken later: a call that runs at once needs none.
_NUMBERED = ("_gradient_op_type", "forward_function_name", "backward_function_name")


_LARGE = 200  # operations; Grappler is done with less before a file could be read


def is_large(graph: Any) -> bool:
    """Whether a traced graph is worth the trouble, with all that it calls."""
    return len(graph.node) + sum(len(each.node_def) for each in graph.library.function) >= _LARGE


def graph_digest(concrete: Any, graph: Any) -> str:
    """Return the digest of a traced function, whose graph is given, and of all that it calls."""
    library = {each.signature.name: each for each in graph.library.function}
    whole = hashlib.sha256()
    numbers: dict[str, str] = {}
    waiting = [concrete.function_def]
    numbers[waiting[0].signature.name] = "function 0"
    for function in waiting:  # grows while it is read
        for name in _called(function, library):
            if name not in numbers:
                numbers[name] = f"function {len(numbers)}"
                waiting.append(library[name])
        raw = _numbered(function, numbers).SerializeToString(deterministic=True)
        whole.update(b"%d\0%s" % (len(raw), raw))
    return whole.hexdigest()


def argument_texts(concrete: Any) -> dict[str, str]:
    """Return what the runtime knows of each argument: type, shape, what a handle is for, and the device."""
    from tensorflow.python.ops import handle_data_util

    captured = {id(inner): outer for outer, inner in concrete.graph.captures}
    found: dict[str, str] = {}
    for index, tensor in enumerate(concrete.inputs):
        outer = captured.get(id(tensor), tensor)
        handle = handle_data_util.get_resource_handle_data(tensor) if tensor.dtype.name == "resource" else None
        refers = "" if handle is None else handle.SerializeToString(deterministic=True).hex()
        device = getattr(outer, "device", "") if outer is not tensor else ""
        found[f"argument {index}"] = f"{tensor.dtype.name}{tensor.shape} {refers} {device}".strip()
    return found


def _called(function: Any, library: Mapping[str, Any]) -> Iterator[str]:
    for node in function.node_def:
        if node.op in library:
            yield node.op
        for name in sorted(node.attr):
            value = node.attr[name]
            if value.HasField("func") and value.func.name in library:
                yield value.func.name
            for called in value.list.func:
                if called.name in library:
                    yield called.name


def _numbered(function: Any, numbers: Mapping[str, str]) -> Any:
    from tensorflow.core.framework import function_pb2

    copy = function_pb2.FunctionDef()
    copy.CopyFrom(function)
    copy.signature.name = numbers[function.signature.name]
    for name in _NUMBERED:
        copy.attr.pop(name, None)
    arguments = {argument.name: f"argument {index}" for index, argument in enumerate(copy.signature.input_arg)}
    for argument in copy.signature.input_arg:
        argument.name = arguments[argument.name]
    for name, source in list(copy.ret.items()):
        copy.ret[name] = arguments.get(source, source)
    for node in copy.node_def:
        for index, source in enumerate(node.input):
            if source in arguments:
                node.input[index] = arguments[source]
        node.op = numbers.get(node.op, node.op)
        node.ClearField("experimental_debug_info")
        for name in _NUMBERED:
            node.attr.pop(name, None)
        for value in node.attr.values():
            if value.HasField("func"):
                value.func.name = numbers.get(value.func.name, value.func.name)
            for called in value.list.func:
                called.name = numbers.get(called.name, called.name)
    return copy
