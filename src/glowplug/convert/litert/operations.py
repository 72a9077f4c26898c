"""Which operations are left to LiteRT where it is Glowplug that chooses the engine.

Answers are compared on some calls only. So `auto` takes a converted model only if each of its operations is known to
compute what TensorFlow's computes, for all finite numbers (`tests/convert/test_litert_semantics.py` tries it), and if
its source has none that the converter leaves out without a word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from glowplug.bundle.tflite import TfliteModel
from glowplug.core.errors import UnsupportedModelError

if TYPE_CHECKING:
    from glowplug.convert.source.saved_model import SavedModel

_NAMES = """
    ABS ADD ADD_N ARG_MAX ARG_MIN ATAN2 AVERAGE_POOL_2D BATCH_MATMUL BATCH_TO_SPACE_ND BROADCAST_ARGS BROADCAST_TO CAST
    CEIL CONCATENATION CONV_2D COS CUMSUM DEPTHWISE_CONV_2D DEPTH_TO_SPACE DIV ELU EQUAL EXP EXPAND_DIMS FILL FLOOR
    FLOOR_DIV FLOOR_MOD FULLY_CONNECTED GATHER GELU GREATER GREATER_EQUAL HARD_SWISH IF L2_NORMALIZATION
    LEAKY_RELU LESS LESS_EQUAL LOCAL_RESPONSE_NORMALIZATION LOG LOGICAL_AND LOGICAL_NOT LOGICAL_OR LOGISTIC LOG_SOFTMAX
    MAXIMUM MAX_POOL_2D MEAN MINIMUM MIRROR_PAD MUL NEG NOT_EQUAL ONE_HOT PACK PAD PADV2 POW PRELU RANGE RANK
    REDUCE_ALL REDUCE_ANY REDUCE_MAX REDUCE_MIN REDUCE_PROD RELU RELU6 RELU_0_TO_1 RELU_N1_TO_1 RESHAPE RESIZE_BILINEAR
    RESIZE_NEAREST_NEIGHBOR REVERSE_V2 ROUND RSQRT SELECT SELECT_V2 SHAPE SIGN SIN SLICE SOFTMAX SPACE_TO_BATCH_ND
    SPACE_TO_DEPTH SPLIT SPLIT_V SQRT SQUARE SQUARED_DIFFERENCE SQUEEZE STRIDED_SLICE SUB SUM TANH TILE TOPK_V2
    TRANSPOSE TRANSPOSE_CONV UNPACK ZEROS_LIKE
"""
_KNOWN = frozenset(_NAMES.split())
_LEFT_OUT = frozenset({"Assert", "CheckNumerics", "CheckNumericsV2", "EnsureShape"})


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


def refuse_unknown(model: TfliteModel) -> None:
    """Raise for a converted model with an operation that is not known to do what TensorFlow's does."""
    from ai_edge_litert.schema_py_generated import BuiltinOperator

    names = {number: name for name, number in vars(BuiltinOperator).items() if isinstance(number, int)}
    used = {names.get(number, str(number)) for graph in model.graphs for number in graph.operations.tolist()}
    if used - _KNOWN:
        raise UnsupportedModelError(
            "LiteRT is not known to compute an operation of this model as TensorFlow does",
            seen=", ".join(sorted(used - _KNOWN)[:5]),
            remedy="--engine litert packs it for LiteRT all the same, if the answers that are compared are equal",
        )
