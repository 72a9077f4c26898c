"""A `.tflite` file is refused before LiteRT sees it, whatever is wrong with it that can be seen from outside."""

from __future__ import annotations

import random

import pytest

from glowplug.bundle.tflite.model import check_tflite
from glowplug.bundle.tflite.shapes import DecidedBy, shapes_decided_by
from glowplug.core.errors import BundleError, OpNotAllowedError, TfliteMalformedError

pytest.importorskip("ai_edge_litert")

from tests import tflites
from tests.tflites import ADD, CUSTOM, FLOAT32, INT32, RESHAPE, SHAPE, Node, TestTensor, write_tflite


def test_what_can_be_called_is_told() -> None:
    found = check_tflite(tflites.dense())
    assert {name: str(one) for name, one in found.signatures.items()} == {
        "serving_default": "(features: float32[?, 4]) -> (scores: float32[?, 3])"
    }
    assert found.declared
    assert not found.stateful
    plain = check_tflite(tflites.dense(signature=None, rows=2))
    assert not plain.declared
    assert str(plain.signatures["serving_default"]) == "(features:0: float32[2, 4]) -> (scores:0: float32[2, 3])"
    assert [port.tensor for port in plain.signatures["serving_default"].inputs.values()] == ["0:0"]


def test_nothing_of_a_file_that_is_cut_off_is_used() -> None:
    data = tflites.dense()
    for size in range(0, len(data) - 1, 4):
        with pytest.raises(TfliteMalformedError):
            check_tflite(data[:size])


def test_damaged_bytes_are_refused_or_harmless() -> None:
    data = tflites.dense()
    draw = random.Random(1)
    outcomes = set()
    for _ in range(3000):
        spoiled = bytearray(data)
        for _ in range(draw.randint(1, 4)):
            spoiled[draw.randrange(len(data))] = draw.choice((0, 1, 0x7F, 0x80, 0xFF, draw.randrange(256)))
        try:
            check_tflite(bytes(spoiled))
            outcomes.add("passed")
        except BundleError:
            outcomes.add("refused")
    assert outcomes == {"passed", "refused"}  # weights and names may be anything


def _external(model: object) -> None:
    from ai_edge_litert import schema_py_generated as schema

    group = schema.ExternalBufferGroupT()
    group.name = b"/etc/passwd"
    model.externalBufferGroups = [group]


def _set(path: str, value: object):
    def change(model: object) -> None:
        place = model
        *steps, last = path.split(".")
        for step in steps:
            place = place[int(step)] if step.isdigit() else getattr(place, step)
        setattr(place, last, value)

    return change


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_set("version", 2), "version"),
        (_set("subgraphs", []), "no graph"),
        (_external, "other files"),
        (_set("subgraphs.0.tensors.1.externalBuffer", 1), "other files"),
        (_set("subgraphs.0.tensors.1.buffer", 99), "no buffer"),
        (_set("subgraphs.0.tensors.1.shape", [3, 5]), "another size"),
        (_set("subgraphs.0.tensors.1.shape", [1 << 30, 4]), "another size"),
        (_set("subgraphs.0.tensors.1.shape", [1] * 40), "dimensions"),
        (_set("subgraphs.0.tensors.1.type", 100), "unknown type"),
        (_set("subgraphs.0.operators.0.inputs", [0, 1, 77]), "no tensor"),
        (_set("subgraphs.0.operators.0.inputs", [0, 1, -2]), "no tensor"),
        (_set("subgraphs.0.operators.0.outputs", [-1]), "no tensor"),
        (_set("subgraphs.0.operators.0.opcodeIndex", 3), "no operation"),
        (_set("subgraphs.0.operators.0.largeCustomOptionsOffset", 64), "outside"),
        (_set("subgraphs.0.inputs", [4]), "no tensor"),
        (_set("signatureDefs.0.subgraphIndex", 1), "no graph"),
        (_set("signatureDefs.0.inputs.0.tensorIndex", 4), "no tensor"),
        (_set("signatureDefs.0.inputs.0.name", b"\x1b[2J"), "printed"),
        (_set("signatureDefs.0.signatureKey", b"\xff\xfe"), "UTF-8"),
        (_set("buffers.1.offset", 1 << 40), "outside the file"),
        (_set("buffers.1.offset", (1 << 63) + 64), "bounds"),
        (_set("subgraphs.0.tensors.1.shape", [-3, -4]), "negative"),
        (_set("subgraphs.0.tensors.0.shape", [1 << 30, 1 << 30]), "larger than any memory"),
        (_set("subgraphs.0.operators.0.outputs", [1]), "writes a constant"),
        (_set("subgraphs.0.operators.0.inputs", [3, 1, 2]), "no node before it"),
        (_set("subgraphs.0.operators.0.builtinOptionsType", 200), "unknown options"),
        (_set("subgraphs.0.operators.0.builtinOptions2Type", 5), "unknown options"),
    ],
)
def test_hostile_files_are_refused(change, reason: str) -> None:
    with pytest.raises(TfliteMalformedError, match=reason):
        check_tflite(tflites.dense(change=change))


@pytest.mark.parametrize(
    "node", [Node(CUSTOM, (0, 1, 2), (3,), "FlexMul"), Node(51, (0,), (3,)), Node(999, (0,), (3,))]
)
def test_operations_that_are_not_litert_s_own_are_refused(node: Node) -> None:
    tensors = [TestTensor(name, (1,)) for name in "abcd"]
    with pytest.raises(OpNotAllowedError, match=r"FlexMul|number"):
        check_tflite(write_tflite(tensors, [node], [0], [3]))


def _decided(nodes: list[Node], count: int, constants: tuple[int, ...] = ()) -> DecidedBy:
    four = bytes(8)
    tensors = [TestTensor(f"t{i}", (2,), INT32, four if i in constants else None) for i in range(count)]
    return shapes_decided_by(check_tflite(write_tflite(tensors, nodes, [0], [count - 1])).graphs)


def test_what_decides_shapes_is_told() -> None:
    assert _decided([Node(ADD, (0, 0), (1,))], 2) is DecidedBy.CONSTANTS
    assert _decided([Node(RESHAPE, (0, 1), (2,))], 3, constants=(1,)) is DecidedBy.CONSTANTS
    assert _decided([Node(RESHAPE, (0, -1), (1,))], 2) is DecidedBy.CONSTANTS
    through_shapes = [Node(SHAPE, (0,), (1,)), Node(ADD, (1, 1), (2,)), Node(RESHAPE, (0, 2), (3,))]
    assert _decided(through_shapes, 4) is DecidedBy.SHAPES
    assert _decided([Node(ADD, (0, 0), (1,)), Node(RESHAPE, (0, 1), (2,))], 3) is DecidedBy.DATA
    assert shapes_decided_by(check_tflite(tflites.where()).graphs) is DecidedBy.DATA


def test_types_of_inputs_must_be_ones_that_arrays_can_carry() -> None:
    tensors = [TestTensor("a", (1,), 13), TestTensor("b", (1,), FLOAT32)]
    with pytest.raises(TfliteMalformedError, match="cannot carry"):
        check_tflite(write_tflite(tensors, [Node(ADD, (0, 0), (1,))], [0], [1]))


def _runner(code: int, kind: str, **graphs: int) -> bytes:
    """A graph of one node that runs other graphs; there are two."""
    from ai_edge_litert import schema_py_generated as schema

    def change(model: object) -> None:
        options = getattr(schema, f"{kind}T")()
        for name, value in graphs.items():
            setattr(options, name, value)
        (node,) = model.subgraphs[0].operators
        node.builtinOptionsType, node.builtinOptions = getattr(schema.BuiltinOptions, kind), options
        other = schema.SubGraphT()
        other.tensors, other.operators = model.subgraphs[0].tensors, []
        other.inputs, other.outputs = [0], [0]
        model.subgraphs.append(other)

    tensors = [TestTensor("a", (1,)), TestTensor("b", (1,))]
    return write_tflite(tensors, [Node(code, (0,), (1,))], [0], [1], change=change)


def test_graphs_that_run_each_other_come_to_an_end() -> None:
    check_tflite(_runner(119, "WhileOptions", condSubgraphIndex=1, bodySubgraphIndex=1))
    with pytest.raises(TfliteMalformedError, match="runs itself"):
        check_tflite(_runner(119, "WhileOptions", condSubgraphIndex=1, bodySubgraphIndex=0))
    with pytest.raises(TfliteMalformedError, match="not there"):
        check_tflite(_runner(118, "IfOptions", thenSubgraphIndex=1, elseSubgraphIndex=2))
    with pytest.raises(TfliteMalformedError, match="not there"):
        check_tflite(_runner(129, "CallOnceOptions", initSubgraphIndex=-1))
    with pytest.raises(TfliteMalformedError, match="does not say"):
        check_tflite(_runner(119, "AddOptions"))


def test_options_that_point_out_of_the_file_are_refused() -> None:
    data = _runner(119, "WhileOptions", condSubgraphIndex=1, bodySubgraphIndex=1)
    from ai_edge_litert import schema_py_generated as schema

    node = schema.Model.GetRootAsModel(data, 0).Subgraphs(0).Operators(0)
    at = node._tab.Pos + node._tab.Offset(4 + 2 * 4)  # where the distance to the options stands
    for distance in (len(data), 0x7FFF_FFF0, 0xFFFF_FFFC, len(data) - at - 4):
        with pytest.raises(TfliteMalformedError):
            check_tflite(data[:at] + distance.to_bytes(4, "little") + data[at + 4 :])
    options = node.BuiltinOptions().Pos
    vtable = options - int.from_bytes(data[options : options + 4], "little", signed=True)
    with pytest.raises(TfliteMalformedError, match="outside its table"):
        check_tflite(data[: vtable + 4] + (0x7FF0).to_bytes(2, "little") + data[vtable + 6 :])


def _quantized(**parts: object):
    def change(model: object) -> None:
        from ai_edge_litert import schema_py_generated as schema

        one = schema.QuantizationParametersT()
        for name, value in parts.items():
            setattr(one, name, value)
        model.subgraphs[0].tensors[1].quantization = one

    return change


def test_quantisation_is_looked_at() -> None:
    check_tflite(tflites.dense(change=_quantized(scale=[0.5], zeroPoint=[0])))
    data = tflites.dense(change=_quantized(scale=[0.5], zeroPoint=[7]))
    scale = data.index(b"\x01\0\0\0" + b"\0\0\0\x3f")
    with pytest.raises(TfliteMalformedError, match="past its end"):
        check_tflite(data[:scale] + (1 << 20).to_bytes(4, "little") + data[scale + 4 :])

    def sparse(model: object) -> None:
        from ai_edge_litert import schema_py_generated as schema

        model.subgraphs[0].tensors[1].sparsity = schema.SparsityParametersT()

    with pytest.raises(TfliteMalformedError, match="cannot be checked"):
        check_tflite(tflites.dense(change=sparse))


@pytest.mark.parametrize("words", [(2, 16, 17, 18), (9, 16, 17, 18), (-1, 0, 0, 0), (2, 16, 15, 18), (2, 4, 17, 18)])
def test_texts_lie_inside_their_constant(words: tuple[int, ...]) -> None:
    data = b"".join(word.to_bytes(4, "little", signed=True) for word in words) + b"ab"
    tensors = [TestTensor("texts", (2,), tflites.STRING, data), TestTensor("x", (2,), tflites.STRING)]
    model = write_tflite([*tensors, TestTensor("y", (2,), 6)], [Node(71, (0, 1), (2,))], [1], [2])
    if words == (2, 16, 17, 18):
        check_tflite(model)
        return
    with pytest.raises(TfliteMalformedError, match="texts"):
        check_tflite(model)
