"""Rewrites that let a multiplication and an addition disappear into the convolution or product before them.

A batch normalisation at inference is `x * scale + offset` by constants. The scale moves into the weights of the
convolution, the offset becomes its bias, and TensorFlow's own optimiser then makes one kernel of convolution, bias
and activation. The rewritten weights are computed once, by `folding`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from tensorflow.core.framework import attr_value_pb2

from .attributes import constant, dtype_attr
from .editor import GraphEditor, attribute, is_control, node_of
from .folding import foldable_nodes
from .shapes import Shape, infer_shapes

_FLOATS = (1, 2)  # DT_FLOAT, DT_DOUBLE: in shorter types the order of rounding shows
_CONTRACTIONS = frozenset({"Conv2D", "DepthwiseConv2dNative", "MatMul"})
_ADDS = frozenset({"AddV2", "Add", "BiasAdd"})
_DEEPEST = 8


def fuse_scales(graph: GraphEditor, weights: set[str], kept: set[str]) -> None:
    """Apply the rewrites until none fits. Nodes in `kept` are fetched or run by name and keep their meaning."""
    for _ in range(_DEEPEST):
        if not _Pass(graph, weights, kept).run():
            return


class _Pass:
    """One sweep over the graph. Constants are the nodes that depend on weights alone."""

    def __init__(self, graph: GraphEditor, weights: set[str], kept: set[str]) -> None:
        self._graph = graph
        self._kept = kept
        self._constant = foldable_nodes(graph, weights)
        self._shapes = infer_shapes(graph)
        self._readers = {name: len(_data_readers(nodes, name)) for name, nodes in graph.consumers().items()}
        self._moved: dict[str, str] = {}

    def run(self) -> bool:
        for node in list(self._graph.nodes.values()):
            if attribute(node, "T").type in _FLOATS and not any(is_control(r) for r in node.input):
                self._rewrite(node)
        self._graph.redirect(self._moved)
        self._graph.keep(self._graph.slice(self._kept))
        return bool(self._moved)

    def _rewrite(self, node: Any) -> None:
        if node.name in self._kept or any(node_of(r) in self._moved for r in node.input):
            return
        if node.op == "FusedBatchNormV3":
            self._split_batch_norm(node)
        elif node.op == "Mul":
            self._absorb_scale(node)
        elif node.op in ("AddV2", "Add"):
            self._absorb_offset(node)

    def _absorb_scale(self, node: Any) -> None:
        found = self._constant_operand(node)
        if found is None:
            return
        data, scale = found
        producer = self._sole(data)
        if producer is not None and producer.op in _CONTRACTIONS and self._per_channel(scale, producer):
            producer.input[1] = self._scaled_weights(producer, scale)
            self._moved[node.name] = producer.name
        elif producer is not None and producer.op in _ADDS and (inner := self._constant_operand(producer)):
            contraction, offset = inner
            source = self._sole(contraction)
            if source is None or source.op not in _CONTRACTIONS:
                return
            if not (self._per_channel(scale, source) and self._per_channel(offset, source)):
                return
            flat = [self._flat(tensor, source, node) for tensor in (offset, scale)]
            source.input[1] = self._scaled_weights(source, scale)
            product = self._binary("Mul", f"{node.name}/offset", flat, node)
            self._moved[node.name] = self._bias(source, product, node).name

    def _absorb_offset(self, node: Any) -> None:
        found = self._constant_operand(node)
        producer = found and self._sole(found[0])
        if found is None or producer is None:
            return
        offset = found[1]
        if producer.op in _CONTRACTIONS and self._per_channel(offset, producer):
            self._moved[node.name] = self._bias(producer, self._flat(offset, producer, node), node).name
        elif producer.op == "BiasAdd" and (inner := self._constant_operand(producer)):
            source = self._sole(inner[0])
            if source is not None and source.op in _CONTRACTIONS and self._per_channel(offset, source):
                flat = [self._flat(tensor, source, node) for tensor in (inner[1], offset)]
                total = self._binary("AddV2", f"{node.name}/offset", flat, node)
                self._moved[node.name] = self._bias(source, total, node).name

    def _split_batch_norm(self, node: Any) -> None:
        """Write a frozen batch normalisation after a convolution as a multiplication and an addition."""
        producer = self._sole(node.input[0])
        constants = [node_of(r) in self._constant for r in node.input[1:5]]
        plain = not attribute(node, "is_training").b and attribute(node, "U").type == attribute(node, "T").type
        unread = not any(f"{node.name}:{i}" in r.input for r in self._graph.nodes.values() for i in range(1, 6))
        if not (plain and unread and all(constants) and producer is not None):
            return
        if attribute(node, "data_format").s not in (b"", b"NHWC") or not self._ends_contraction(producer):
            return
        data, gamma, beta, mean, variance = node.input[:5]
        dtype = np.float32 if attribute(node, "T").type == 1 else np.float64
        epsilon = constant(self._graph, f"{node.name}/epsilon", dtype(attribute(node, "epsilon").f))
        shifted = self._binary("AddV2", f"{node.name}/variance", [variance, epsilon], node)
        root = self._graph.create("Rsqrt", f"{node.name}/rsqrt", [shifted], T=attribute(node, "T")).name
        scale = self._binary("Mul", f"{node.name}/scale", [gamma, root], node)
        shift = self._binary("Mul", f"{node.name}/shift", [mean, scale], node)
        offset = self._binary("Sub", f"{node.name}/offset", [beta, shift], node)
        product = self._binary("Mul", f"{node.name}/product", [data, scale], node)
        self._moved[node.name] = self._binary("AddV2", f"{node.name}/sum", [product, offset], node)

    def _ends_contraction(self, node: Any) -> bool:
        """Say whether a node is a contraction, or the bias of one."""
        if node.op in _ADDS and (inner := self._constant_operand(node)):
            node = self._sole(inner[0])
        return node is not None and node.op in _CONTRACTIONS

    def _constant_operand(self, node: Any) -> tuple[str, str] | None:
        """Return the varying and the constant operand of a binary node, if it has one of each."""
        first, second = node.input[:2]
        if node_of(second) in self._constant and node_of(first) not in self._constant:
            return first, second
        if node.op != "BiasAdd" and node_of(first) in self._constant and node_of(second) not in self._constant:
            return second, first
        return None

    def _sole(self, reference: str) -> Any | None:
        """Return the node behind a tensor if nobody else reads it and it may be changed."""
        name = node_of(reference)
        node = self._graph.nodes.get(name)
        if node is None or reference != name or name in self._kept or self._readers.get(name) != 1:
            return None
        if any(is_control(r) for r in node.input) or name in self._moved:
            return None
        if node.op in _CONTRACTIONS and (
            node_of(node.input[1]) not in self._constant or attribute(node, "data_format").s not in (b"", b"NHWC")
        ):
            return None
        return node

    def _channels(self, contraction: Any) -> int | None:
        shape = self._shapes.get(contraction.input[1])
        if shape is None or None in shape:
            return None
        if contraction.op == "DepthwiseConv2dNative":
            return math.prod(size for size in shape[2:] if size is not None)
        if contraction.op == "MatMul" and attribute(contraction, "transpose_b").b:
            return shape[0]
        return shape[-1]

    def _per_channel(self, reference: str, contraction: Any) -> bool:
        """Say whether a constant has one value for each output channel."""
        shape: Shape = self._shapes.get(reference)
        rank = 2 if contraction.op == "MatMul" else 4
        channels = self._channels(contraction)
        if not shape or channels is None or len(shape) > rank:
            return False
        return shape[-1] == channels and all(size == 1 for size in shape[:-1])

    def _scaled_weights(self, contraction: Any, scale: str) -> str:
        weights = self._shapes[contraction.input[1]]
        assert weights is not None
        if contraction.op == "DepthwiseConv2dNative":
            dims = [size or 0 for size in weights[2:]]
        elif contraction.op == "MatMul" and attribute(contraction, "transpose_b").b:
            dims = [weights[0] or 0, 1]
        else:
            dims = [weights[-1] or 0]
        shaped = self._reshape(scale, dims, contraction)
        return self._binary("Mul", f"{contraction.name}/weights", [contraction.input[1], shaped], contraction)

    def _flat(self, reference: str, contraction: Any, like: Any) -> str:
        channels = self._channels(contraction)
        assert channels is not None
        return self._reshape(reference, [channels], like)

    def _reshape(self, reference: str, dims: list[int], like: Any) -> str:
        shape = constant(self._graph, f"{like.name}/shape", np.array(dims, np.int32))
        attributes = {"T": attribute(like, "T"), "Tshape": dtype_attr(3)}
        return self._made(self._graph.create("Reshape", f"{like.name}/reshape", [reference, shape], **attributes))

    def _binary(self, op: str, name: str, inputs: list[str], like: Any) -> str:
        return self._made(self._graph.create(op, name, inputs, T=attribute(like, "T")))

    def _bias(self, contraction: Any, offset: str, like: Any) -> Any:
        attributes = {"T": attribute(like, "T"), "data_format": attr_value_pb2.AttrValue(s=b"NHWC")}
        return self._graph.create("BiasAdd", f"{like.name}/bias", [contraction.name, offset], **attributes)

    def _made(self, node: Any) -> str:
        name: str = node.name
        return name


def _data_readers(nodes: list[Any], name: str) -> list[str]:
    return [r for node in nodes for r in node.input if node_of(r) == name]
