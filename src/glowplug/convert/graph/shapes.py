"""Static shapes of a graph's tensors, as TensorFlow infers them."""

from __future__ import annotations

import tensorflow as tf

from .editor import GraphEditor, canonical

Shape = tuple[int | None, ...] | None


def infer_shapes(graph: GraphEditor) -> dict[str, Shape]:
    """Return the shape of each tensor; `None` for an unknown rank."""
    shapes: dict[str, Shape] = {}
    with tf.Graph().as_default() as imported:
        tf.graph_util.import_graph_def(graph.to_graph_def(), name="")
        for operation in imported.get_operations():
            for output in operation.outputs:
                known = output.shape.rank is not None
                shapes[canonical(output.name)] = tuple(output.shape.as_list()) if known else None
    return shapes
