"""Short ways to write the `AttrValue`s of new nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tensorflow.core.framework import attr_value_pb2, tensor_shape_pb2
from tensorflow.python.framework import tensor_util


def dtype_attr(code: int) -> Any:
    """Return a type attribute."""
    return attr_value_pb2.AttrValue(type=code)


def shape_attr(dims: Sequence[int | None] | None) -> Any:
    """Return a shape attribute; `None` is an unknown size or an unknown rank."""
    shape = tensor_shape_pb2.TensorShapeProto(unknown_rank=dims is None)
    for size in dims or ():
        shape.dim.add().size = -1 if size is None else size
    return attr_value_pb2.AttrValue(shape=shape)


def constant(graph: Any, name: str, array: NDArray[Any] | np.generic) -> str:
    """Add a small constant to a graph editor and return its name."""
    proto = tensor_util.make_tensor_proto(np.asarray(array))
    attributes = {"dtype": dtype_attr(proto.dtype), "value": attr_value_pb2.AttrValue(tensor=proto)}
    created: str = graph.create("Const", name, **attributes).name
    return created
