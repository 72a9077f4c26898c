"""The weights of a graph under conversion: placeholders, and how to get the value of each when it is wanted.

Values lie in a spool and are read one at a time, so that memory stays near one copy of the model.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from tensorflow.python.framework import tensor_util

from glowplug.convert.source.spool import Spool, Value
from glowplug.core.dtypes import BY_CODE

from .attributes import dtype_attr, shape_attr
from .editor import GraphEditor

SMALLEST_BYTES = 1024  # below this a constant costs less inside the graph than as one more fed tensor


@dataclass(slots=True)
class Weights:
    """Placeholder node -> the value it stands for, and the name its source gave it."""

    values: dict[str, Value] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)

    def add(self, node: Any, value: Value, dtype: int, shape: tuple[int, ...]) -> None:
        """Turn `node` into a placeholder that is fed `value`."""
        name = node.name
        del node.input[:]
        node.attr.clear()
        node.op = "Placeholder"
        node.attr["dtype"].CopyFrom(dtype_attr(dtype))
        node.attr["shape"].CopyFrom(shape_attr(shape))
        self.values[name] = value
        self.names[name] = name

    def keep(self, graph: GraphEditor) -> None:
        """Forget weights whose placeholders are gone."""
        self.values = {name: value for name, value in self.values.items() if name in graph.nodes}
        self.names = {name: self.names[name] for name in self.values if name in self.names}


def extract_constants(graph: GraphEditor, weights: Weights, spool: Spool) -> None:
    """Move constants of some size out of the graph."""
    for node in list(graph.nodes.values()):
        if node.op != "Const" or node.input:  # with a control edge, it belongs to the frame of a loop
            continue
        proto = node.attr["value"].tensor
        dtype = BY_CODE.get(proto.dtype)
        if dtype is None or not dtype.itemsize:
            continue
        shape = tuple(dim.size for dim in proto.tensor_shape.dim)
        if math.prod(shape) * dtype.itemsize < SMALLEST_BYTES:
            continue
        value = spool.store(tensor_util.MakeNdarray(proto))
        weights.add(node, value, proto.dtype, shape)
