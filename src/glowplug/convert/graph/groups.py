"""Finds convolutions in groups: those whose filter takes a part of the channels of their input.

TensorFlow's optimiser fuses them with their bias where it cannot see the channels, and releases up to 2.19 have no CPU
kernel for the result: the call fails. The shapes of inputs are hidden from the optimiser, so it cannot see them here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from .attributes import shape_attr
from .editor import GraphEditor, attribute, node_of
from .shapes import Shape, infer_shapes

_KINDS = frozenset({"Conv2D"})


def grouped_convolutions(graph: GraphEditor, declared: Mapping[str, Shape]) -> frozenset[str]:
    """Return the nodes that are known to convolve in groups, given the shapes that inputs are declared to have."""
    nodes = [node for node in graph.nodes.values() if node.op in _KINDS]
    if not nodes:
        return frozenset()
    known = GraphEditor(graph.to_graph_def())
    for tensor, shape in declared.items():
        node = known.nodes.get(node_of(tensor))
        if node is not None and node.op == "Placeholder":
            node.attr["shape"].CopyFrom(shape_attr(shape))
    shapes: dict[str, Shape] = {}
    with contextlib.suppress(ValueError):  # what is declared need not fit: then nothing is known
        shapes = infer_shapes(known)
    found = set()
    for node in nodes:
        data, kernel = shapes.get(node.input[0]), shapes.get(node.input[1])
        place = 1 if attribute(node, "data_format").s == b"NCHW" else 3
        if data and kernel and None not in (data[place], kernel[2]) and data[place] != kernel[2]:
            found.add(node.name)
    return frozenset(found)
