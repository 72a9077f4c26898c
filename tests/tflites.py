"""LiteRT models written by hand, in milliseconds and without TensorFlow, and bundles around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from glowplug.bundle import layout
from glowplug.bundle.tflite.model import check_tflite
from glowplug.bundle.writer import BundleWriter
from glowplug.core.manifest import Interface, LiteRTSettings, Manifest, Signature
from glowplug.core.protobuf_wire import bytes_field, integer_field

ADD, FULLY_CONNECTED, MUL, RESHAPE, CUSTOM, SHAPE, WHERE = 0, 9, 18, 22, 32, 77, 109
FLOAT32, INT32, INT64, STRING = 0, 2, 4, 5
KERNEL = np.arange(12, dtype=np.float32).reshape(3, 4)  # outputs by inputs
BIAS = np.array([0.5, -1.0, 2.0], np.float32)


@dataclass(frozen=True)
class TestTensor:
    name: str
    shape: Sequence[int]
    kind: int = FLOAT32
    data: bytes | None = None

    __test__ = False


@dataclass(frozen=True)
class Node:
    code: int
    inputs: Sequence[int]
    outputs: Sequence[int]
    custom: str = ""


def write_tflite(
    tensors: Sequence[TestTensor],
    nodes: Sequence[Node],
    inputs: Sequence[int],
    outputs: Sequence[int],
    signatures: Mapping[str, tuple[Mapping[str, int], Mapping[str, int]]] | None = None,
    metadata: Mapping[str, bytes] | None = None,
    change: Any = None,
) -> bytes:
    """Return the bytes of a model of one graph. `change` may spoil LiteRT's own form of it first."""
    import flatbuffers
    from ai_edge_litert import schema_py_generated as schema

    model = schema.ModelT()
    model.version = 3
    model.buffers = [schema.BufferT()]
    graph = schema.SubGraphT()
    graph.tensors, graph.operators, graph.inputs, graph.outputs = [], [], list(inputs), list(outputs)
    for one in tensors:
        tensor = schema.TensorT()
        tensor.name, tensor.type, tensor.buffer = one.name.encode(), one.kind, 0
        tensor.shape, tensor.shapeSignature = [abs(size) for size in one.shape], list(one.shape)
        if one.data is not None:
            buffer = schema.BufferT()
            buffer.data = np.frombuffer(one.data, np.uint8)
            tensor.buffer = len(model.buffers)
            model.buffers.append(buffer)
        graph.tensors.append(tensor)
    model.operatorCodes = []
    for node in nodes:
        code = schema.OperatorCodeT()
        code.builtinCode, code.deprecatedBuiltinCode, code.version = node.code, min(node.code, 127), 1
        code.customCode = node.custom.encode() or None
        operator = schema.OperatorT()
        operator.opcodeIndex = len(model.operatorCodes)
        operator.inputs, operator.outputs = list(node.inputs), list(node.outputs)
        if node.code == FULLY_CONNECTED:
            operator.builtinOptionsType = schema.BuiltinOptions.FullyConnectedOptions
            operator.builtinOptions = schema.FullyConnectedOptionsT()
        elif node.code == MUL:
            operator.builtinOptionsType = schema.BuiltinOptions.MulOptions
            operator.builtinOptions = schema.MulOptionsT()
        elif node.code == ADD:
            operator.builtinOptionsType = schema.BuiltinOptions.AddOptions
            operator.builtinOptions = schema.AddOptionsT()
        model.operatorCodes.append(code)
        graph.operators.append(operator)
    model.subgraphs = [graph]
    model.signatureDefs = []
    for name, sides in (signatures or {}).items():
        signature = schema.SignatureDefT()
        signature.signatureKey, signature.subgraphIndex = name.encode(), 0
        maps = []
        for side in sides:
            maps.append([])
            for key, index in side.items():
                entry = schema.TensorMapT()
                entry.name, entry.tensorIndex = key.encode(), index
                maps[-1].append(entry)
        signature.inputs, signature.outputs = maps
        model.signatureDefs.append(signature)
    model.metadata = []
    for name, content in (metadata or {}).items():
        buffer = schema.BufferT()
        buffer.data = np.frombuffer(content, np.uint8)
        entry = schema.MetadataT()
        entry.name, entry.buffer = name.encode(), len(model.buffers)
        model.buffers.append(buffer)
        model.metadata.append(entry)
    if change is not None:
        change(model)
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def dense(*, signature: str | None = "serving_default", rows: int = -1, **more: Any) -> bytes:
    """`scores = features @ KERNEL.T + BIAS`."""
    tensors = [
        TestTensor("features:0", (rows, 4)),
        TestTensor("kernel", (3, 4), data=KERNEL.tobytes()),
        TestTensor("bias", (3,), data=BIAS.tobytes()),
        TestTensor("scores:0", (rows, 3)),
    ]
    signatures = {signature: ({"features": 0}, {"scores": 3})} if signature else {}
    return write_tflite(tensors, [Node(FULLY_CONNECTED, (0, 1, 2), (3,))], [0], [3], signatures, **more)


def dense_answer(features: Any) -> Any:
    return np.asarray(features) @ KERNEL.T + BIAS


def two_sided(kind: int = INT64) -> bytes:
    """`right` is `b + a`, of a type that `CompiledModel` does not have; `left` is `a + a`. Names are not in order."""
    tensors = [
        TestTensor("second:0", (-1,), kind),
        TestTensor("first:0", (-1,), kind),
        TestTensor("sum:0", (-1,), kind),
        TestTensor("twice:0", (-1,), kind),
    ]
    nodes = [Node(ADD, (1, 0), (2,)), Node(ADD, (1, 1), (3,))]
    signatures = {"serving_default": ({"b": 0, "a": 1}, {"right": 2, "left": 3})}
    return write_tflite(tensors, nodes, [0, 1], [2, 3], signatures)


def half_plus_two(*, named: bool = False) -> bytes:
    """`y = x / 2 + 2`, as in TensorFlow Serving's tests: without signatures, or with those of TensorFlow 2.3."""
    tensors = [
        TestTensor("tflite_input" if named else "x", (1, 1)),
        TestTensor("a", (1,), data=np.float32(0.5).tobytes()),
        TestTensor("b", (1,), data=np.float32(2).tobytes()),
        TestTensor("product", (1, 1)),
        TestTensor("y", (1, 1)),
    ]
    nodes = [Node(MUL, (0, 1), (3,)), Node(ADD, (3, 2), (4,))]
    metadata = {"signature_defs_metadata": _legacy_signatures()} if named else None
    return write_tflite(tensors, nodes, [0], [4], metadata=metadata)


def _legacy_signatures() -> bytes:
    from flatbuffers import flexbuffers

    def side(number: int, name: str, tensor: str) -> bytes:
        info = bytes_field(1, tensor.encode()) + integer_field(2, 1)
        return bytes_field(number, bytes_field(1, name.encode()) + bytes_field(2, info))

    builder = flexbuffers.Builder()
    with builder.Map():
        builder.Key("serving_default")
        method = bytes_field(3, b"tensorflow/serving/predict")
        builder.String((side(1, "x", "tflite_input:0") + side(2, "y", "y:0") + method).decode())
    return bytes(builder.Finish())


def where() -> bytes:
    """The places of the elements that are not zero: how many there are is in the data."""
    tensors = [TestTensor("x:0", (-1,)), TestTensor("places:0", (-1, 1), INT64)]
    return write_tflite(tensors, [Node(WHERE, (0,), (1,))], [0], [1], {"serving_default": ({"x": 0}, {"places": 1})})


def write_bundle(
    directory: Path,
    data: bytes,
    interface: Interface = "interpreter",
    *,
    any_shape: bool = False,
    names: Mapping[str, str] | None = None,
) -> Manifest:
    """Write a bundle around a model; `names` are further names for its signatures."""
    signatures: dict[str, Signature] = dict(check_tflite(data).signatures)
    signatures.update({new: signatures[old] for new, old in (names or {}).items()})
    directory.mkdir(parents=True, exist_ok=True)
    with BundleWriter(directory) as writer:
        writer.add_file(layout.TFLITE, data)
        return writer.finish(
            engine="litert", signatures=signatures, litert=LiteRTSettings(interface, any_shape), equivalence={}
        )


def change_manifest(directory: Path, **changes: Any) -> Manifest:
    """Change the settings of a bundle's engine."""
    from glowplug.bundle import schema
    from glowplug.bundle.reader import read_manifest

    manifest = read_manifest(directory)
    assert manifest.litert is not None
    manifest = replace(manifest, litert=replace(manifest.litert, **changes))
    (directory / layout.MANIFEST).write_bytes(schema.dump(manifest))
    return manifest
