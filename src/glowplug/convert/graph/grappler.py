"""Runs TensorFlow's own graph optimiser ahead of time, on a graph whose weights are placeholders."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from tensorflow.core.protobuf import config_pb2, meta_graph_pb2, rewriter_config_pb2
from tensorflow.python.grappler import tf_optimizer

from .editor import GraphEditor

# The optimiser allocates an array for every placeholder whose shape it knows: a second copy of all weights. This
# operation has the same attributes, and is as opaque to it, without that.
_STAND_IN = "InfeedDequeue"
_CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
_OFF = rewriter_config_pb2.RewriterConfig.OFF


def optimize(
    graph: GraphEditor, keep: Iterable[str], weights: Collection[str], *, portable: bool, alone: Collection[str] = ()
) -> GraphEditor:
    """Return the optimised graph. The tensors and nodes in `keep` stay, and so do the `weights`.

    `portable` leaves out the passes whose result suits only this machine (fused kernels, data layout). The nodes that
    are `alone` are not fused with others.
    """
    meta = meta_graph_pb2.MetaGraphDef(graph_def=graph.to_graph_def())
    for node in meta.graph_def.node:
        if node.name in weights:
            node.op = _STAND_IN
    if not portable:
        for node in meta.graph_def.node:  # fused kernels are chosen by device, and only where one is named
            node.device = "" if node.name in alone else _CPU
    meta.collection_def["train_op"].node_list.value.extend(sorted({*keep, *weights}))
    config = config_pb2.ConfigProto(device_count={"GPU": 0})
    rewrite = config.graph_options.rewrite_options
    rewrite.min_graph_nodes = -1  # small graphs too
    rewrite.meta_optimizer_timeout_ms = -1
    if portable:
        rewrite.remapping = rewrite.layout_optimizer = rewrite.auto_mixed_precision = _OFF
    optimized: Any = tf_optimizer.OptimizeGraph(config, meta, verbose=False)
    for node in optimized.node:
        if node.op == _STAND_IN:
            node.op = "Placeholder"
    return GraphEditor(optimized)
