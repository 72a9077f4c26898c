"""Compares two traces, whatever their nodes and functions are called."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping
from typing import Any

# Set by TensorFlow for its own bookkeeping: names and numbers of this process.
_NOISE = frozenset({"_user_specified_name", "_gradient_op_type", "_class", "config_proto", "_XlaHasReferenceVars"})
_NOISE_OF_FUNCTIONS = frozenset({"_construction_context", "forward_function_name", "backward_function_name"})


def same_trace(first: bytes, second: bytes) -> bool:
    """Whether two deflated GraphDefs describe the same computation in the same order."""
    return first == second or _digest_of(first) == _digest_of(second)


def difference(stored: bytes, fresh: bytes) -> str:
    """Return what differs first between two deflated GraphDefs, for a person to read; nothing if they are the same."""
    if same_trace(stored, fresh):
        return ""
    first, second = (_Graph(data) for data in (stored, fresh))
    return _first_difference(first.graph.node, second.graph.node, first, second)


def function_digest(concrete: Any) -> str:
    """Return a digest of a traced function that is the same in every process."""
    called = {each.signature.name: each for each in concrete.graph.as_graph_def().library.function}
    name = concrete.function_def.signature.name
    return _Functions({**called, name: concrete.function_def}).digest(name)


class _Graph:
    def __init__(self, data: bytes) -> None:
        from tensorflow.core.framework import graph_pb2

        self.graph = graph_pb2.GraphDef.FromString(zlib.decompress(data))
        self.functions = {each.signature.name: each for each in self.graph.library.function}
        self.digests = _Functions(self.functions)


def _first_difference(ours: Any, theirs: Any, first: _Graph, second: _Graph) -> str:
    for mine, other in zip(ours, theirs, strict=False):
        if mine.op != other.op and not {mine.op, other.op} & (first.functions.keys() | second.functions.keys()):
            return f"{mine.name} is a {mine.op} in the stored trace, {other.name} a {other.op} now"
        for name in sorted((mine.attr.keys() | other.attr.keys()) - _NOISE):
            left, right = _attribute(mine.attr[name], first.digests), _attribute(other.attr[name], second.digests)
            if left == right:
                continue
            called = first.functions.get(mine.attr[name].func.name), second.functions.get(other.attr[name].func.name)
            if called[0] is not None and called[1] is not None:
                return _first_difference(called[0].node_def, called[1].node_def, first, second)
            return (
                f"{name} of {mine.name} ({mine.op}) is {_shown(mine.attr[name])} in the stored trace, "
                f"{_shown(other.attr[name])} now"
            )
    if len(ours) != len(theirs):
        return f"the stored trace has {len(ours)} nodes here, a fresh one {len(theirs)}"
    return "its nodes are connected in another way"


def _shown(value: Any) -> str:
    if value.HasField("tensor"):
        from tensorflow.python.framework.tensor_util import MakeNdarray

        return " ".join(str(MakeNdarray(value.tensor)).split())[:80]
    return " ".join(str(value).split())[:80]


def _digest_of(data: bytes) -> str:
    from tensorflow.core.framework import graph_pb2

    graph = graph_pb2.GraphDef.FromString(zlib.decompress(data))
    functions = {each.signature.name: each for each in graph.library.function}
    return _nodes_digest(graph.node, _Functions(functions), {})


class _Functions:
    """Digests of functions by name, each made once."""

    def __init__(self, functions: Mapping[str, Any]) -> None:
        self._functions = functions
        self._digests: dict[str, str] = {}

    def digest(self, name: str) -> str:
        if name not in self._functions:
            return name
        if name not in self._digests:
            self._digests[name] = "recursive"
            function = self._functions[name]
            inputs = {argument.name: f"argument {i}" for i, argument in enumerate(function.signature.input_arg)}
            body = _nodes_digest(function.node_def, self, inputs)
            ends = [_position(function.ret[argument.name], inputs) for argument in function.signature.output_arg]
            self._digests[name] = hashlib.sha256(f"{body} {ends}".encode()).hexdigest()
        return self._digests[name]


def _nodes_digest(nodes: Any, functions: _Functions, positions: dict[str, str]) -> str:
    for index, node in enumerate(nodes):
        positions[node.name] = f"node {index}"
    whole = hashlib.sha256()
    for node in nodes:
        inputs = [_position(source, positions) for source in node.input]
        attributes = {name: _attribute(value, functions) for name, value in node.attr.items() if name not in _NOISE}
        text = repr((functions.digest(node.op), inputs, sorted(attributes.items())))
        whole.update(b"%d\0%s" % (len(text), text.encode()))
    return whole.hexdigest()


def _position(source: str, positions: Mapping[str, str]) -> str:
    control = source.startswith("^")
    name, _, port = source.lstrip("^").partition(":")
    return f"{'^' if control else ''}{positions.get(name, name)}:{port}"


def _attribute(value: Any, functions: _Functions) -> Any:
    if value.HasField("func"):
        return functions.digest(value.func.name)
    if value.list.func:
        return [functions.digest(called.name) for called in value.list.func]
    return hashlib.sha256(value.SerializeToString(deterministic=True)).hexdigest()
