"""Computes, once, what depends on weights alone, and stores the results as weights.

TensorFlow's own constant folding does this for constants inside the graph; ours are outside it, so that no weight
ever passes through a protocol buffer.
"""

from __future__ import annotations

import math

import tensorflow as tf
from tensorflow.core.protobuf import config_pb2
from tensorflow.python.framework import op_def_registry

from glowplug.convert.source.spool import Spool
from glowplug.core.dtypes import BY_CODE

from .editor import GraphEditor, is_control, node_of
from .weights import Weights

_GROWTH_BYTES = 1 << 16  # a result may be this much larger than what it was computed from
_NEVER = frozenset({"Placeholder", "PlaceholderWithDefault", "NoOp", "Switch", "Merge", "Enter", "Exit"})


def foldable_nodes(graph: GraphEditor, weights: set[str]) -> set[str]:
    """Return the nodes that depend on weights and small constants alone, those included."""
    folded: set[str] = set()
    for node in graph.in_order():
        if any(is_control(reference) for reference in node.input):
            continue  # it waits for something, or belongs to the frame of a loop
        if node.op == "Const" or node.name in weights:
            folded.add(node.name)
        elif node.input and node.op not in _NEVER and all(node_of(r) in folded for r in node.input):
            definition = op_def_registry.get(node.op)
            if definition is not None and not definition.is_stateful:
                folded.add(node.name)
    return folded


def fold_weights(graph: GraphEditor, weights: Weights, spool: Spool) -> None:
    """Replace each node that depends on weights alone, and that others read, by its value."""
    folded = foldable_nodes(graph, set(weights.values))
    needs = _weights_behind(graph, folded, set(weights.values))
    with tf.Graph().as_default() as imported:
        part = GraphEditor(graph.to_graph_def())
        part.keep(folded)
        tf.graph_util.import_graph_def(part.to_graph_def(), name="")
        chosen = _chosen(graph, folded, needs, imported, weights)
        config = config_pb2.ConfigProto()
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        with tf.compat.v1.Session(graph=imported, config=config) as session:
            for name in chosen:
                feeds = {f"{weight}:0": weights.values[weight]() for weight in sorted(needs[name])}
                result = session.run(f"{name}:0", feeds)
                dtype = imported.get_operation_by_name(name).outputs[0].dtype.as_datatype_enum
                source = max(needs[name], key=lambda weight: feeds[f"{weight}:0"].nbytes)
                label = weights.names[source]
                weights.add(graph.nodes[name], spool.store(result), dtype, result.shape)
                weights.names[name] = label


def _weights_behind(graph: GraphEditor, folded: set[str], weights: set[str]) -> dict[str, set[str]]:
    behind: dict[str, set[str]] = {}
    for node in graph.in_order():
        if node.name in weights:
            behind[node.name] = {node.name}
        elif node.name in folded:
            behind[node.name] = set().union(*(behind[node_of(r)] for r in node.input)) if node.input else set()
    return behind


def _chosen(
    graph: GraphEditor, folded: set[str], needs: dict[str, set[str]], imported: tf.Graph, weights: Weights
) -> list[str]:
    """Return the results worth storing: read from outside, of one output, and not much larger than their weights."""

    def nbytes(name: str) -> int | None:
        outputs = imported.get_operation_by_name(name).outputs
        dtype = BY_CODE.get(outputs[0].dtype.as_datatype_enum) if len(outputs) == 1 else None
        if dtype is None or not dtype.itemsize or not outputs[0].shape.is_fully_defined():
            return None
        sizes: list[int] = outputs[0].shape.as_list()
        return math.prod(sizes) * dtype.itemsize

    def fits(name: str) -> bool:
        size = nbytes(name)
        return size is not None and size <= sum(nbytes(w) or 0 for w in needs[name]) + _GROWTH_BYTES

    wanted: list[str] = []
    open_nodes = {
        node_of(r)
        for node in graph.nodes.values()
        if node.name not in folded
        for r in node.input
        if node_of(r) in folded
    }
    seen: set[str] = set()
    while open_nodes:
        name = open_nodes.pop()
        seen.add(name)
        node = graph.nodes[name]
        if name in weights.values or node.op == "Const" or not needs[name]:
            continue
        if fits(name):
            wanted.append(name)
        else:
            open_nodes.update(node_of(r) for r in node.input if node_of(r) not in seen)
    order = {name: place for place, name in enumerate(graph.nodes)}
    return sorted(wanted, key=order.__getitem__)
