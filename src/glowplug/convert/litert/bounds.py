"""How large a number in a graph can become, as far as its operations alone say: LiteRT's exponential ends before the
largest number does.

Only what follows from the graph counts: what a call, a variable or an unknown operation brings has no bounds. Numbers
are taken to be finite.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from tensorflow.python.framework import tensor_util

from glowplug.convert.graph.editor import is_control, node_of

Interval = tuple[float, float]
Nodes = Mapping[str, Any]

# LiteRT's exponential is infinite from 88.38 on, TensorFlow's from 88.73.
LARGEST_EXPONENT = 88.0
# Powers that the converter writes as something else: itself, a product, a root. Its others overflow to the largest
# number where TensorFlow's are infinite, and the reciprocal root of zero is NaN.
_POWERS = frozenset({0.5, 1.0, 2.0})
_ANY: Interval = (-math.inf, math.inf)
_MAX_DEPTH = 40
_MAX_CONSTANT_BYTES = 1 << 24

_SAME_NAMES = """
    BroadcastTo ExpandDims Identity Max Mean Min PreventGradient Reshape Reverse ReverseV2 Slice Snapshot Squeeze
    StopGradient StridedSlice Tile Transpose
"""
_SAME = frozenset(_SAME_NAMES.split())
_PASSED = frozenset({"Identity", "PreventGradient", "Snapshot", "StopGradient"})
_FIXED: Mapping[str, Interval] = {
    "LogSoftmax": (-math.inf, 0.0),
    "Relu6": (0.0, 6.0),
    "Sigmoid": (0.0, 1.0),
    "Sign": (-1.0, 1.0),
    "Softmax": (0.0, 1.0),
    "SquaredDifference": (0.0, math.inf),
    "Tanh": (-1.0, 1.0),
}


def has_large_exponent(nodes: Nodes) -> bool:
    """Say whether a graph or a function has an exponential of what may be too large for LiteRT's."""
    return any(node.op == "Exp" and bounds(node.input[0], nodes)[1] > LARGEST_EXPONENT for node in nodes.values())


def has_other_power(nodes: Nodes) -> bool:
    """Say whether a graph or a function has a power that LiteRT computes otherwise."""
    return any(node.op == "Pow" and not _is_plain(_constant(node.input[1], nodes)) for node in nodes.values())


def _is_plain(exponent: Interval) -> bool:
    return exponent[0] == exponent[1] and exponent[0] in _POWERS


def bounds(reference: str, nodes: Nodes, depth: int = 0) -> Interval:
    """Return the least and the largest that a tensor can be."""
    node = nodes.get(node_of(reference))
    if node is None or depth > _MAX_DEPTH:
        return _ANY
    given = [one for one in node.input if not is_control(one)]

    def of(place: int) -> Interval:
        return bounds(given[place], nodes, depth + 1)

    if node.op == "Const":
        return _constant(reference, nodes)
    if node.op in _FIXED:
        return _FIXED[node.op]
    if node.op in _SAME:
        return of(0)
    if node.op == "Sub" and _is_own_largest(given[0], given[1], nodes):
        return (-math.inf, 0.0)
    if node.op == "Mul" and _source_of(given[0], nodes) == _source_of(given[1], nodes):
        return _square(of(0))
    if node.op == "Pow":
        exponent = _constant(given[1], nodes)
        return _square(of(0)) if exponent == (2.0, 2.0) else _ANY
    one, two = _ONE.get(node.op), _TWO.get(node.op)
    if one is not None:
        return one(of(0))
    if two is not None:
        return two(of(0), of(1))
    if node.op == "ClipByValue":
        return _least(_largest(of(0), of(1)), of(2))
    if node.op in ("Select", "SelectV2"):
        return _either(of(1), of(2))
    if node.op in ("ConcatV2", "Pack"):
        parts = [of(place) for place in range(len(given) - (node.op == "ConcatV2"))]
        return min(low for low, _ in parts), max(high for _, high in parts)
    return _ANY


def _constant(reference: str, nodes: Nodes) -> Interval:
    """Return the bounds of a constant, also of one behind operations that hand it on."""
    node = nodes.get(_source_of(reference, nodes))
    if node is None or node.op != "Const" or node.attr["value"].tensor.ByteSize() > _MAX_CONSTANT_BYTES:
        return _ANY
    values = tensor_util.MakeNdarray(node.attr["value"].tensor)
    if not values.size or values.dtype.kind not in "iuf" or not np.isfinite(values).all():
        return _ANY
    return float(values.min()), float(values.max())


def _source_of(reference: str, nodes: Nodes) -> str:
    """Return the node that a tensor comes from, before those that hand it on as it is."""
    name = node_of(reference)
    while (node := nodes.get(name)) is not None and node.op in _PASSED:
        name = node_of(node.input[0])
    return name


def _is_own_largest(operand: str, largest: str, nodes: Nodes) -> bool:
    """Say whether one tensor is the largest of each row of another one, as a softmax subtracts it."""
    node = nodes.get(_source_of(largest, nodes))
    if node is None or node.op != "Max" or not node.attr["keep_dims"].b:
        return False
    return _source_of(node.input[0], nodes) == _source_of(operand, nodes)


def _product(a: Interval, b: Interval) -> Interval:
    ends = [0.0 if 0.0 in (x, y) else x * y for x in a for y in b]
    return min(ends), max(ends)


def _quotient(a: Interval, b: Interval) -> Interval:
    return _ANY if b[0] <= 0.0 <= b[1] else _product(a, (1.0 / b[1], 1.0 / b[0]))


def _square(a: Interval) -> Interval:
    low, high = _magnitude(a)
    return low * low, high * high


def _magnitude(a: Interval) -> Interval:
    return (0.0 if a[0] <= 0.0 <= a[1] else min(abs(a[0]), abs(a[1]))), max(abs(a[0]), abs(a[1]))


def _sum(a: Interval) -> Interval:
    """Of any number of elements only the sign is known."""
    return (0.0 if a[0] >= 0.0 else -math.inf), (0.0 if a[1] <= 0.0 else math.inf)


def _exponential(a: Interval) -> Interval:
    return 0.0, math.exp(a[1]) if a[1] <= LARGEST_EXPONENT else math.inf


def _root(a: Interval) -> Interval:
    return 0.0, math.sqrt(max(a[1], 0.0))


def _least(a: Interval, b: Interval) -> Interval:
    return min(a[0], b[0]), min(a[1], b[1])


def _largest(a: Interval, b: Interval) -> Interval:
    return max(a[0], b[0]), max(a[1], b[1])


def _either(a: Interval, b: Interval) -> Interval:
    return min(a[0], b[0]), max(a[1], b[1])


def _added(a: Interval, b: Interval) -> Interval:
    return a[0] + b[0], a[1] + b[1]


_ONE: Mapping[str, Callable[[Interval], Interval]] = {
    "Abs": _magnitude,
    "Exp": _exponential,
    "Neg": lambda a: (-a[1], -a[0]),
    "Relu": lambda a: (max(a[0], 0.0), max(a[1], 0.0)),
    "Sqrt": _root,
    "Square": _square,
    "Sum": _sum,
}
_TWO: Mapping[str, Callable[[Interval, Interval], Interval]] = {
    "Add": _added,
    "AddV2": _added,
    "BiasAdd": _added,
    "Maximum": _largest,
    "Minimum": _least,
    "Mul": _product,
    "RealDiv": _quotient,
    "Sub": lambda a, b: (a[0] - b[1], a[1] - b[0]),
}
