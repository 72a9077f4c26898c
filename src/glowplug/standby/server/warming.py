"""Does ahead of the fork what TensorFlow's first operations would do in every child. Runs in the standby.

Operations are registered (`glowplug.runtime.registration`). oneDNN writes the machine code of its matrix product when
it is first needed, and the pass that looks for oneDNN's kernels goes through all registered kernels once for each
operation and element type. All keep their result for the process and start no thread. The last two are not exported, so
they are found in the library's symbol table. Each is tried in a forked child first: where one is missing or behaves
otherwise, it is not warmed, and children are that much slower.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from functools import partial

from glowplug.runtime.registration import register

from .elf import addresses

_GEMM = "dnnl_sgemm"
_IS_MKL_OP = (
    "_ZN10tensorflow15mkl_op_registryL7IsMklOpERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEENS_8DataTypeEb"
)
_FLOAT, _INT32, _INT64, _BOOL, _RESOURCE = 1, 3, 9, 10, 20
_EVERY_TYPE = (_FLOAT, 2, _INT32, 4, 7, _INT64, _BOOL, 14, 19, _RESOURCE, 21, 22, 23)
_NUMBERS = (_FLOAT, _INT32, _INT64)
_PLUMBING = (
    "_Arg", "_Retval", "_DeviceArg", "_DeviceRetval", "_EagerConst", "Identity", "Pack", "Reshape", "Fill",
    "StridedSlice",
)  # fmt: skip
_ARITHMETIC = (
    "Add", "AddV2", "Sub", "Mul", "RealDiv", "Div", "Maximum", "Minimum", "Pow", "Sum", "Mean", "Max", "Min", "Prod",
    "Range", "ConcatV2", "GatherV2", "ExpandDims", "Squeeze", "Tile", "Slice", "Greater", "GreaterEqual", "Less",
    "LessEqual", "Equal", "NotEqual", "Select", "SelectV2", "Neg", "Square", "Abs", "FloorDiv", "FloorMod", "Shape",
    "ZerosLike", "OnesLike", "BroadcastTo", "Transpose", "Bitcast", "Unpack", "Split", "SplitV", "Pad", "PadV2",
)  # fmt: skip
_FLOATING = (
    "MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "Einsum", "BiasAdd", "BiasAddGrad", "Relu", "ReluGrad",
    "Sigmoid", "SigmoidGrad", "Tanh", "Softmax", "LogSoftmax", "Exp", "Log", "Log1p", "Sqrt", "Rsqrt", "Erf", "Elu",
    "Relu6", "LeakyRelu", "Softplus", "Selu", "Conv2D", "DepthwiseConv2dNative", "MaxPool", "AvgPool",
    "FusedBatchNormV3", "SquaredDifference", "StatelessRandomUniformV2", "StatelessTruncatedNormalV2",
    "StatelessRandomNormalV2", "RandomStandardNormal", "RandomUniform", "TruncatedNormal", "AddN", "L2Loss",
    "SparseSoftmaxCrossEntropyWithLogits", "SoftmaxCrossEntropyWithLogits", "_MklMatMul", "_MklEinsum",
    "_MklBatchMatMulV2", "_FusedConv2D", "_FusedMatMul", "_FusedDepthwiseConv2dNative", "_FusedBatchNormEx",
    "_MklNative_FusedConv2D", "_MklNative_FusedMatMul", "_MklNativeConv2D",
    "_MklNativeFusedBatchNormV3", "_MklNativeRelu", "_MklNativeMaxPool",
)  # fmt: skip
_EITHER_PREFIX = ("MatMul", "BatchMatMul", "BatchMatMulV2", "Einsum", "Transpose")


class _String(ctypes.Structure):
    """libstdc++'s std::string, as far as a reader of it goes."""

    _fields_ = (("data", ctypes.c_char_p), ("size", ctypes.c_size_t), ("local", ctypes.c_char * 16))


def warm() -> None:
    """Warm what can be found."""
    directory = _directory()
    if directory is None:
        return
    for function in (partial(register, directory), _products(directory), _kernel_searches(directory)):
        if function is not None and _harmless(function):
            function()


def _directory() -> str | None:
    module = sys.modules.get("tensorflow")
    if module is not None and module.__file__:
        return os.path.dirname(module.__file__)
    from glowplug.runtime import library

    return str(library.find_directory()) if library.is_open() else None


def _products(directory: str) -> Callable[[], None] | None:
    found = addresses(os.path.join(directory, "libtensorflow_cc.so.2"), [_GEMM])
    if not found:
        return None
    number, real, array = ctypes.c_int64, ctypes.c_float, ctypes.c_void_p
    kinds = (
        ctypes.c_char,
        ctypes.c_char,
        number,
        number,
        number,
        real,
        array,
        number,
        array,
        number,
        real,
        array,
        number,
    )
    multiply = ctypes.CFUNCTYPE(ctypes.c_int, *kinds)(found[_GEMM])
    size = 16

    def run() -> None:
        left, right, out = ((ctypes.c_float * (size * size))(*[1.0] * (size * size)) for _ in range(3))
        for first in (b"N", b"T"):
            for second in (b"N", b"T"):
                for beta in (0.0, 1.0):
                    multiply(first, second, size, size, size, 1.0, left, size, right, size, beta, out, size)
        if out[0] <= 0.0:
            raise ValueError("the product is wrong")

    return run


def _kernel_searches(directory: str) -> Callable[[], None] | None:
    found = addresses(os.path.join(directory, "libtensorflow_framework.so.2"), [_IS_MKL_OP])
    if not found:
        return None
    search = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.POINTER(_String), ctypes.c_int, ctypes.c_bool)(found[_IS_MKL_OP])

    def known(name: str, kind: int) -> bool:
        data = name.encode()
        search(ctypes.byref(_String(data, len(data))), kind, False)  # the pass asks for both layouts
        return bool(search(ctypes.byref(_String(data, len(data))), kind, True))

    def run() -> None:
        if known("_MklNativeNoSuchOperation", _FLOAT) or not known("_MklNativeConv2D", _FLOAT):
            raise ValueError("the search does not find what there is")
        for names, kinds in ((_PLUMBING, _EVERY_TYPE), (_ARITHMETIC, _NUMBERS), (_FLOATING, (_FLOAT,))):
            for name in names:
                for kind in kinds:
                    known(f"_MklNative{name}", kind)
        for name in _EITHER_PREFIX:
            known(f"_Mkl{name}", _FLOAT)

    return run


def _harmless(function: Callable[[], None]) -> bool:
    """Call it in a child and say whether that ended well, with one thread."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            function()
            status = 0 if len(os.listdir("/proc/self/task")) == 1 else 1
        except Exception as error:
            print(f"not warmed: {error}", file=sys.stderr, flush=True)
        finally:
            os._exit(status)
    _, status = os.waitpid(pid, 0)
    return status == 0
