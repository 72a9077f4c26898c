"""Which operations are left to LiteRT where it is Glowplug that chooses the engine.

Answers are compared on some calls only, and what a call shows may be hidden from all others: behind a condition, or in
a row of a table that no call has looked up. So `auto` takes a model only if each operation of it is known to compute
what TensorFlow's computes for all finite numbers (`tests/convert/test_litert_semantics.py` tries it): those of the
source, since the converter writes some as a chain that overflows where they do not, and those of the converted model,
with the types that they have there. And the source may have none that the converter leaves out without a word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from glowplug.bundle.tflite.model import ELEMENT_TYPES, TfliteModel
from glowplug.convert.calls.edges import LARGEST_FINITE
from glowplug.core.errors import UnsupportedModelError

if TYPE_CHECKING:
    from glowplug.bundle.tflite.shapes import Nodes
    from glowplug.convert.source.saved_model import SavedModel

_NAMES = """
    ABS ADD ADD_N ARG_MAX ARG_MIN AVERAGE_POOL_2D BATCH_MATMUL BATCH_TO_SPACE_ND BROADCAST_ARGS BROADCAST_TO CAST
    CEIL CONCATENATION CONV_2D CUMSUM DEPTHWISE_CONV_2D DEPTH_TO_SPACE DIV ELU EQUAL EXP EXPAND_DIMS FILL FLOOR
    FULLY_CONNECTED GATHER GELU GREATER GREATER_EQUAL HARD_SWISH L2_NORMALIZATION
    LEAKY_RELU LESS LESS_EQUAL LOCAL_RESPONSE_NORMALIZATION LOG LOGICAL_AND LOGICAL_NOT LOGICAL_OR LOGISTIC LOG_SOFTMAX
    MAXIMUM MAX_POOL_2D MEAN MINIMUM MIRROR_PAD MUL NEG NOT_EQUAL ONE_HOT PACK PAD PADV2 PRELU RANGE RANK
    REDUCE_ALL REDUCE_ANY REDUCE_MAX REDUCE_MIN REDUCE_PROD RELU RELU6 RELU_0_TO_1 RELU_N1_TO_1 RESHAPE RESIZE_BILINEAR
    RESIZE_NEAREST_NEIGHBOR REVERSE_V2 ROUND RSQRT SELECT SELECT_V2 SHAPE SIGN SLICE SOFTMAX SPACE_TO_BATCH_ND
    SPACE_TO_DEPTH SPLIT SPLIT_V SQRT SQUARE SQUARED_DIFFERENCE SQUEEZE STRIDED_SLICE SUB SUM TANH TILE TOPK_V2
    TRANSPOSE TRANSPOSE_CONV UNPACK ZEROS_LIKE
"""
_KNOWN = frozenset(_NAMES.split())
# Of the source. What is not here: functions that become chains of others (Softplus, Log1p, Expm1, Xlogy), state,
# tables, random numbers, angles (tiny numbers are not zero to the C library), and branches, of which the calls that are
# compared may never have taken one. Of exponentials, powers and reciprocal roots `bounds` and `roots` say more.
_SOURCE_NAMES = """
    Abs Add AddN AddV2 All Any ArgMax ArgMin AvgPool BatchMatMul BatchMatMulV2 BatchMatMulV3 BatchToSpaceND
    BiasAdd BiasAddV1 BroadcastArgs BroadcastTo Cast Ceil ClipByValue Concat ConcatV2 Const Conv2D Conv2DBackpropInput
    Cumsum DepthToSpace DepthwiseConv2dNative Div Einsum Elu Equal Erf Erfc Exp ExpandDims Fill Floor FusedBatchNorm
    FusedBatchNormV2 FusedBatchNormV3 Gather GatherV2 Greater GreaterEqual Identity IdentityN InvertPermutation LRN
    LeakyRelu Less LessEqual Log LogSoftmax LogicalAnd LogicalNot LogicalOr MatMul Max MaxPool Maximum Mean Min Minimum
    MirrorPad Mul Neg NoOp NotEqual OneHot OnesLike Pack Pad PadV2 PartitionedCall Placeholder PlaceholderWithDefault
    Pow PreventGradient Prod Range Rank ReadVariableOp RealDiv Reciprocal Relu Relu6 Reshape ResizeBilinear
    ResizeNearestNeighbor ResourceGather Reverse ReverseV2 Rint Round Rsqrt Select SelectV2 Selu Shape ShapeN Sigmoid
    Sign Size Slice Snapshot Softmax SpaceToBatchND SpaceToDepth Split SplitV Sqrt Square SquaredDifference Squeeze
    StatefulPartitionedCall StopGradient StridedSlice Sub Sum Tanh Tile TopKV2 Transpose Unpack VarHandleOp
    VarIsInitializedOp ZerosLike
"""
_SOURCE_KNOWN = frozenset(_SOURCE_NAMES.split())
# Of the converted model: what is known to treat NaN and infinity as TensorFlow's does, too. What is not here keeps NaN
# only where it comes first, or makes the largest number of infinity, or (EXP) zero of NaN.
_BEYOND_NAMES = """
    ABS ADD BATCH_MATMUL BATCH_TO_SPACE_ND BROADCAST_ARGS BROADCAST_TO CAST CEIL CONCATENATION CONV_2D CUMSUM
    DEPTHWISE_CONV_2D DEPTH_TO_SPACE DIV EQUAL EXPAND_DIMS FILL FLOOR FULLY_CONNECTED GATHER GREATER GREATER_EQUAL
    LEAKY_RELU LESS LESS_EQUAL LOG LOGICAL_AND LOGICAL_NOT LOGICAL_OR MEAN MIRROR_PAD MUL NEG NOT_EQUAL ONE_HOT PACK PAD
    PADV2 PRELU RANGE RANK REDUCE_ALL REDUCE_ANY REDUCE_PROD RELU RELU6 RESHAPE RESIZE_NEAREST_NEIGHBOR REVERSE_V2
    ROUND SELECT SELECT_V2 SHAPE SIGN SLICE SPACE_TO_BATCH_ND SPACE_TO_DEPTH SPLIT SPLIT_V SQUARE SQUARED_DIFFERENCE
    SQUEEZE STRIDED_SLICE SUB SUM TANH TILE TRANSPOSE UNPACK ZEROS_LIKE
"""
_KNOWN_BEYOND = frozenset(_BEYOND_NAMES.split())
# What is computed wrongly where a number is nearly the largest one (a root from 8.5e37 on, by half; a logarithm from
# 2.4e38 on): up to which inputs it is left to LiteRT, so that what is made of them, as the mean of their squares, stays
# well below.
_LARGEST_INPUTS = {"SQRT": 1e15, "RSQRT": 1e15, "LOG": 1e30}
_LEFT_OUT = frozenset({"Assert", "CheckNumerics", "CheckNumericsV2", "EnsureShape"})

_FLOATING = frozenset({"float16", "bfloat16", "float32", "float64"})
_COMPUTE_ON_FLOATS = frozenset({"DIV"})  # integers are divided through others, and the least one otherwise
_INDICES_AT = {"GATHER": 1, "ONE_HOT": 0}  # which input they are; those of 64 bits are cut to 32


def refuse_left_out(source: SavedModel) -> None:
    """Raise for a model that refuses some inputs by an operation that the converter leaves out."""
    from glowplug.convert.calls.hopeless import reached_ops  # with TensorFlow, which .tflite files do without

    for name in source.signatures:
        found = sorted(reached_ops(source, name) & _LEFT_OUT)
        if found:
            raise UnsupportedModelError(
                "LiteRT's converter leaves out an operation of this model",
                seen=f"{found[0]} in signature {name!r}",
                remedy="pack it with --engine native",
            )


def refuse_unknown_source(source: SavedModel) -> None:
    """Raise for a model with an operation of which it is not known what the converter makes."""
    from glowplug.convert.calls.hopeless import reached_nodes, reached_ops

    from .bounds import has_large_exponent, has_other_power
    from .roots import has_root_of_anything

    kinds = {
        "Rsqrt of what may be zero": has_root_of_anything,
        "Exp of what may be large": has_large_exponent,
        "Pow with another exponent than 0.5, 1 and 2": has_other_power,
    }
    for name in source.signatures:
        found = sorted(reached_ops(source, name) - _SOURCE_KNOWN)
        if found:
            raise _unknown(f"{', '.join(found[:5])} in signature {name!r}")
        for nodes in reached_nodes(source, name):
            for kind, is_there in kinds.items():
                if is_there(nodes):
                    raise _unknown(f"{kind} in signature {name!r}")


def refuse_unknown(model: TfliteModel) -> None:
    """Raise for a converted model with an operation that is not known to do what TensorFlow's does."""
    names = _operation_names()
    found = sorted({one for graph in model.graphs for one in _unknown_in(graph, names)})
    if found:
        raise _unknown(", ".join(found[:5]))


def largest_known(model: TfliteModel) -> float | None:
    """Return up to which inputs each operation is known to do what TensorFlow's does; None for all, NaN among them.

    Convolutions and products are taken to: with an activation they do not, and every call that has some shows it.
    """
    names = _operation_names()
    found = {names.get(number, "") for graph in model.graphs for number in graph.operations.tolist()}
    bounds = [_LARGEST_INPUTS[name] for name in found & _LARGEST_INPUTS.keys()]
    return min(bounds) if bounds else (None if found <= _KNOWN_BEYOND else LARGEST_FINITE)


def _operation_names() -> dict[int, str]:
    from ai_edge_litert.schema_py_generated import BuiltinOperator

    return {number: name for name, number in vars(BuiltinOperator).items() if isinstance(number, int)}


def _unknown_in(graph: Nodes, names: dict[int, str]) -> set[str]:
    first_inputs = np.cumsum(graph.input_counts) - graph.input_counts
    first_outputs = np.cumsum(graph.output_counts) - graph.output_counts
    unknown = set()
    for node, number in enumerate(graph.operations.tolist()):
        name = names.get(number, str(number))
        ends = first_inputs[node] + graph.input_counts[node], first_outputs[node] + graph.output_counts[node]
        given = [_type(graph, one) for one in graph.inputs[first_inputs[node] : ends[0]]]
        made = [_type(graph, one) for one in graph.outputs[first_outputs[node] : ends[1]]]
        if name not in _KNOWN:
            unknown.add(name)
        elif name in _COMPUTE_ON_FLOATS and not set(made) <= _FLOATING:
            unknown.add(f"{name} of {made[0]}")
        elif name in _INDICES_AT and given[_INDICES_AT[name]] == "int64":
            unknown.add(f"{name} with indices of int64")
        elif name == "CAST" and given[0] in _FLOATING and not {*made} <= _FLOATING | {"bool"}:
            unknown.add(f"CAST of {given[0]} to {made[0]}")
    return unknown


def _type(graph: Nodes, tensor: int) -> str:
    return ELEMENT_TYPES[int(graph.types[tensor])] if tensor >= 0 else ""


def _unknown(seen: str) -> UnsupportedModelError:
    return UnsupportedModelError(
        "LiteRT is not known to compute an operation of this model as TensorFlow does",
        seen=seen,
        remedy="--engine litert packs it for LiteRT all the same, if the answers that are compared are equal",
    )
