"""Turns variables that nobody writes into weights, and keeps the others, set at load from their saved value."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.framework import tensor_util

from glowplug.convert.source.saved_model import SavedModel
from glowplug.convert.source.spool import Spool, Value
from glowplug.core.errors import TensorFlowError, UnsupportedModelError

from .attributes import constant, dtype_attr
from .editor import GraphEditor, attribute, is_control, node_of
from .weights import Weights

_RESOURCE, _REF = ("VarHandleOp",), ("VariableV2", "Variable")
_STRING = 7  # DT_STRING
_BATCH_BYTES = 128 << 20
_WRITES_REF = frozenset({"Assign", "AssignAdd", "AssignSub", "CountUpTo", "IsVariableInitialized"})


def bind_variables(graph: GraphEditor, source: SavedModel, weights: Weights, spool: Spool) -> list[str]:
    """Replace every variable of the graph. Returns the nodes to run at load to set those that stay variables."""
    initializers: list[str] = []
    consumers = graph.consumers()
    moved: dict[str, str] = {}
    variables = [node for node in graph.nodes.values() if node.op in _RESOURCE + _REF]
    values = _read_values(variables, source, spool)
    for node in variables:
        dtype = node.attr["dtype"].type
        value, shape = values[node.name]
        if node.op in _REF:
            if any(_writes(reader, node.name) for reader in consumers[node.name]):
                initializers.append(_initialize(graph, node, "Assign", weights, value, dtype, shape))
            else:
                _hold(node, weights, value, dtype, shape)
        elif all(_reads(reader, node.name) for reader in consumers[node.name]):
            for reader in consumers[node.name]:
                _read_placeholder(graph, reader, node.name, dtype, moved)
            _hold(node, weights, value, dtype, shape)
        else:
            initializers.append(_initialize(graph, node, "AssignVariableOp", weights, value, dtype, shape))
    graph.drop_control_edges(set(moved) | {node.name for node in variables})
    for name in moved:
        del graph.nodes[name]
    graph.redirect(moved)
    return initializers


def _reads(reader: Any, handle: str) -> bool:
    return reader.op in _READERS or all(is_control(r) for r in reader.input if node_of(r) == handle)


def _writes(reader: Any, variable: str) -> bool:
    return (reader.op in _WRITES_REF or reader.op.startswith("Scatter")) and node_of(reader.input[0]) == variable


def _read_placeholder(graph: GraphEditor, reader: Any, weight: str, dtype: int, moved: dict[str, str]) -> None:
    """Rewrite one node that reads a variable into one that reads a fed tensor."""
    if reader.op in _READERS:
        _READERS[reader.op](graph, reader, weight, dtype, moved)


def _as_direct(graph: GraphEditor, reader: Any, weight: str, dtype: int, moved: dict[str, str]) -> None:
    moved[reader.name] = weight


def _as_gather(graph: GraphEditor, reader: Any, weight: str, dtype: int, moved: dict[str, str]) -> None:
    indices, batch_dims = reader.attr["Tindices"].type, attribute(reader, "batch_dims").i
    axis = constant(graph, f"{reader.name}/axis", np.int32(batch_dims))
    data = [reference for reference in reader.input if not is_control(reference)]
    control = [reference for reference in reader.input if is_control(reference)]
    reader.op = "GatherV2"
    reader.input[:] = [weight, data[1], axis, *control]
    reader.attr.clear()
    reader.attr["Tparams"].CopyFrom(dtype_attr(dtype))
    reader.attr["Tindices"].CopyFrom(dtype_attr(indices))
    reader.attr["Taxis"].CopyFrom(dtype_attr(3))
    reader.attr["batch_dims"].CopyFrom(attr_value_pb2.AttrValue(i=batch_dims))


def _as_gather_nd(graph: GraphEditor, reader: Any, weight: str, dtype: int, moved: dict[str, str]) -> None:
    indices = reader.attr["Tindices"].type
    reader.op = "GatherNd"
    reader.attr.clear()
    reader.attr["Tparams"].CopyFrom(dtype_attr(dtype))
    reader.attr["Tindices"].CopyFrom(dtype_attr(indices))


def _as_shape(graph: GraphEditor, reader: Any, weight: str, dtype: int, moved: dict[str, str]) -> None:
    reader.op = "Shape"
    reader.attr["T"].CopyFrom(dtype_attr(dtype))


_READERS = {
    "ReadVariableOp": _as_direct,
    "ResourceGather": _as_gather,
    "ResourceGatherNd": _as_gather_nd,
    "VariableShape": _as_shape,
}


def _hold(node: Any, weights: Weights, value: Value, dtype: int, shape: tuple[int, ...]) -> None:
    """Turn a node into a weight, or into a constant if it holds strings, which cannot be mapped from a file."""
    if dtype != _STRING:
        weights.add(node, value, dtype, shape)
        return
    proto = tensor_util.make_tensor_proto(value())
    node.op = "Const"
    node.attr.clear()
    node.attr["dtype"].CopyFrom(dtype_attr(dtype))
    node.attr["value"].tensor.CopyFrom(proto)


def _initialize(
    graph: GraphEditor, node: Any, op: str, weights: Weights, value: Value, dtype: int, shape: tuple[int, ...]
) -> str:
    """Add a placeholder for the saved value and the node that assigns it."""
    initial = graph.create("Placeholder", f"{node.name}/initial_value")
    _hold(initial, weights, value, dtype, shape)
    weights.names[initial.name] = node.name
    key = "dtype" if op == "AssignVariableOp" else "T"
    assign = graph.create(op, f"{node.name}/set", [node.name, initial.name], **{key: dtype_attr(dtype)})
    name: str = assign.name
    return name


def _read_values(variables: list[Any], source: SavedModel, spool: Spool) -> dict[str, tuple[Value, tuple[int, ...]]]:
    """Read the variables from the loaded model, as many at a time as fit a fixed amount of memory."""
    values = {}
    for batch in _batches(variables):
        try:
            arrays = source.read_variables(batch)
        except TensorFlowError as error:
            names = ", ".join(node.name for node in batch[:3])
            raise UnsupportedModelError("variables have no saved value", seen=f"{names}: {error.seen}") from error
        for node, array in zip(batch, arrays, strict=True):
            values[node.name] = (spool.store(array), array.shape)
    return values


def _batches(variables: list[Any]) -> Iterator[list[Any]]:
    batch: list[Any] = []
    total = 0
    for node in variables:
        dims = [dim.size for dim in attribute(node, "shape").shape.dim]
        nbytes = math.prod(dims) * 8 if all(size >= 0 for size in dims) else _BATCH_BYTES
        if batch and total + nbytes > _BATCH_BYTES:
            yield batch
            batch, total = [], 0
        batch.append(node)
        total += nbytes
    if batch:
        yield batch
