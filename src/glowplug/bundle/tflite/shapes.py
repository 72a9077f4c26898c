"""What decides the shapes of a LiteRT model's tensors: constants, the shapes of the inputs, or what is in them.

LiteRT's `CompiledModel` writes into buffers that are made before a call. An output that turns out larger is written
past the end of its buffer. So it may be used only where the shapes of all tensors are known beforehand, and this is
told from a list of operations: one that is not on it may do anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from glowplug.core.records import Record

if TYPE_CHECKING:
    from numpy.typing import NDArray


class DecidedBy(IntEnum):
    """What the shapes of all tensors follow from."""

    CONSTANTS = 0  # and the shapes of the inputs, as LiteRT itself works them out ahead of a call
    SHAPES = 1  # of the inputs, through numbers that the graph computes when it runs
    DATA = 2


class Nodes(Record):
    """The operations of one graph, and the tensors that go in and come out: all in one row, with the count for each."""

    operations: NDArray[np.int64]
    inputs: NDArray[np.int64]
    input_counts: NDArray[np.int64]
    outputs: NDArray[np.int64]
    output_counts: NDArray[np.int64]
    constant: NDArray[np.bool_]  # for each tensor
    types: NDArray[np.int64]  # for each tensor, by number


# By number (BuiltinOperator): operations whose outputs have shapes that follow from those of the inputs alone.
_PLAIN = frozenset(
    (
        *(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 17, 18, 19, 20, 21, 25, 26, 28, 36, 41, 42, 43, 47, 50, 53, 54),
        *(55, 57, 58, 59, 61, 62, 63, 64, 66, 71, 72, 73, 75, 76, 77, 78, 80, 83, 84, 86, 87, 88, 90, 92, 93, 95, 98),
        *(99, 101, 104, 105, 106, 107, 108, 110, 111, 112, 113, 114, 115, 116, 117, 123, 126, 128, 132, 133, 134, 135),
        *(145, 147, 150, 151, 152, 156, 158, 159, 160, 161),
    )
)
# Those whose outputs' shapes follow from the values of some inputs too, which are given by their place.
_PARAMETERS: Mapping[int, tuple[int, ...]] = {
    22: (1,),  # RESHAPE
    23: (1,),  # RESIZE_BILINEAR
    34: (1,),  # PAD
    37: (1, 2),  # BATCH_TO_SPACE_ND
    38: (1, 2),  # SPACE_TO_BATCH_ND
    39: (1,),  # TRANSPOSE
    40: (1,),  # MEAN
    45: (1, 2, 3),  # STRIDED_SLICE
    48: (1,),  # TOPK_V2
    49: (0,),  # SPLIT
    56: (1,),  # ARG_MAX
    60: (1,),  # PADV2
    65: (1, 2),  # SLICE
    67: (0,),  # TRANSPOSE_CONV
    69: (1,),  # TILE
    70: (1,),  # EXPAND_DIMS
    74: (1,),  # SUM
    79: (1,),  # ARG_MIN
    81: (1,),  # REDUCE_PROD
    82: (1,),  # REDUCE_MAX
    85: (1,),  # ONE_HOT
    89: (1,),  # REDUCE_MIN
    91: (1,),  # REDUCE_ANY
    94: (0,),  # FILL
    96: (0, 1, 2),  # RANGE
    97: (1,),  # RESIZE_NEAREST_NEIGHBOR
    100: (1,),  # MIRROR_PAD
    102: (1, 2),  # SPLIT_V
    122: (2,),  # SCATTER_ND
    130: (1,),  # BROADCAST_TO
    131: (1,),  # RFFT2D
    140: (1,),  # REDUCE_ALL
    141: (0,),  # CONV_3D_TRANSPOSE
}
_SHAPE, _RANK = 77, 110


def shapes_decided_by(graphs: Sequence[Nodes]) -> DecidedBy:
    """Return what decides the shapes in all graphs of a model."""
    return max((_decided_by(graph) for graph in graphs), default=DecidedBy.CONSTANTS)


def _decided_by(graph: Nodes) -> DecidedBy:
    """Go through the operations in their order and follow which tensors are known before a call."""
    from_shapes: list[bool] = graph.constant.tolist()  # what depends on nothing but constants and shapes
    constant = graph.constant.tolist()
    inputs, outputs = graph.inputs.tolist(), graph.outputs.tolist()
    worst, first_input, first_output = DecidedBy.CONSTANTS, 0, 0
    counts = zip(graph.operations.tolist(), graph.input_counts.tolist(), graph.output_counts.tolist(), strict=True)
    for operation, taken, made in counts:
        mine = inputs[first_input : first_input + taken]
        parameters = _PARAMETERS.get(operation)
        if parameters is None and operation not in _PLAIN:
            return DecidedBy.DATA
        for place in parameters or ():
            if place < taken and mine[place] >= 0 and not constant[mine[place]]:
                if not from_shapes[mine[place]]:
                    return DecidedBy.DATA
                worst = DecidedBy.SHAPES
        known = operation in (_SHAPE, _RANK) or all(one < 0 or from_shapes[one] for one in mine)
        for one in outputs[first_output : first_output + made]:
            from_shapes[one] = known
        first_input, first_output = first_input + taken, first_output + made
    return worst
