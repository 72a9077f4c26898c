"""Finds reciprocal roots of what may be zero: TensorFlow's is infinite there, LiteRT's is NaN."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tensorflow.python.framework import tensor_util

from glowplug.convert.graph.editor import node_of

_KEEPS_FROM_ZERO = frozenset({"Add", "AddV2", "Maximum"})  # as normalisations do with a variance and a small number


def has_root_of_anything(nodes: Mapping[str, Any]) -> bool:
    """Say whether there is one among the nodes of a graph or of a function whose operand nothing keeps from zero."""
    return any(node.op == "Rsqrt" and not _is_kept(nodes.get(node_of(node.input[0])), nodes) for node in nodes.values())


def _is_kept(node: Any, nodes: Mapping[str, Any]) -> bool:
    if node is None or node.op not in _KEEPS_FROM_ZERO:
        return False
    return any(_is_positive(nodes.get(node_of(reference))) for reference in node.input)


def _is_positive(node: Any) -> bool:
    if node is None or node.op != "Const":
        return False
    return bool((tensor_util.MakeNdarray(node.attr["value"].tensor) > 0).all())
