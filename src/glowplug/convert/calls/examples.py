"""Serialized `tf.train.Example`s that a model's parsing operations accept."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from tensorflow.core.example import example_pb2
from tensorflow.python.framework import tensor_util

from glowplug.convert.graph.editor import attribute, is_control, node_of

from .samples import Strings

Nodes = Mapping[str, Any]
_FLOAT, _STRING, _INT64 = 1, 7, 9
_PARSERS = frozenset({"ParseExample", "ParseExampleV2", "ParseSingleExample"})


def example_makers(scopes: Iterable[Nodes]) -> tuple[Strings, ...]:
    """Return one maker of strings for each parsing operation; a scope has the nodes of a graph or of a function."""
    found = (_features(nodes, node) for nodes in scopes for node in nodes.values() if node.op in _PARSERS)
    return tuple(_maker(features) for features in found if features is not None)


def _maker(features: dict[str, tuple[int, int]]) -> Strings:
    def make(random: np.random.Generator, count: int, size: int) -> list[bytes]:
        return [_example(features, random) for _ in range(count)]

    return make


def _example(features: dict[str, tuple[int, int]], random: np.random.Generator) -> bytes:
    example = example_pb2.Example()
    for name, (dtype, count) in features.items():
        feature = example.features.feature[name]
        if dtype == _FLOAT:
            feature.float_list.value.extend(random.standard_normal(count).tolist())
        elif dtype == _INT64:
            feature.int64_list.value.extend(random.integers(0, 2, count).tolist())
        else:
            feature.bytes_list.value.extend([b"text"] * count)
    data: bytes = example.SerializeToString(deterministic=True)
    return data


def _features(nodes: Nodes, node: Any) -> dict[str, tuple[int, int]] | None:
    """Return the type and length of each dense feature, and of sparse ones with a length of one."""
    inputs = [_constant(nodes, reference) for reference in node.input if not is_control(reference)]
    if node.op == "ParseSingleExample":
        sparse_names = [key.decode() for key in attribute(node, "sparse_keys").list.s]
        keys = sparse_names + [key.decode() for key in attribute(node, "dense_keys").list.s]
        sparse_count = len(sparse_names)
    elif node.op == "ParseExample":
        sparse_count = attribute(node, "Nsparse").i
        sparse = inputs[2 : 2 + sparse_count]
        dense = inputs[2 + sparse_count : 2 + sparse_count + attribute(node, "Ndense").i]
        names = [_names(value) for value in (*sparse, *dense)]
        if any(name is None for name in names):
            return None
        keys = [name[0] for name in names if name]
    else:
        sparse_keys, dense_keys = _names(inputs[2]), _names(inputs[3])
        if sparse_keys is None or dense_keys is None:
            return None
        keys, sparse_count = sparse_keys + dense_keys, len(sparse_keys)
    types = [*attribute(node, "sparse_types").list.type, *attribute(node, "Tdense").list.type]
    shapes = [math.prod(max(d.size, 1) for d in shape.dim) for shape in attribute(node, "dense_shapes").list.shape]
    return dict(zip(keys, zip(types, [1] * sparse_count + shapes, strict=True), strict=True))


def _constant(nodes: Nodes, reference: str) -> Any:
    node = nodes.get(node_of(reference))
    while node is not None and node.op == "Identity":
        node = nodes.get(node_of(node.input[0]))
    return tensor_util.MakeNdarray(node.attr["value"].tensor) if node is not None and node.op == "Const" else None


def _names(value: Any) -> list[str] | None:
    return None if value is None else [name.decode() for name in np.ravel(value)]
