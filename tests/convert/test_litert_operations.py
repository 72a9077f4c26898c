"""Which converted models are left to LiteRT by Glowplug itself: written by hand, no TensorFlow."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert")

from tests.tflites import FLOAT32, INT32, INT64, Node, TestTensor, write_tflite

from glowplug.bundle.tflite.model import check_tflite
from glowplug.bundle.warmup import Request
from glowplug.convert.calls.edges import EVERYDAY, LARGEST_FINITE, Edge, compare_edges, record_edges
from glowplug.convert.calls.equivalence import RecordedCall, Recording
from glowplug.convert.litert.operations import largest_known, refuse_unknown
from glowplug.core.errors import OutputMismatchError, UnsupportedModelError
from glowplug.core.manifest import Port, Signature, TensorSpec

ADD, GATHER, DIV, CAST, FLOOR_MOD, SIN, POW, EXP, MAXIMUM = 0, 36, 42, 53, 95, 66, 78, 47, 55
LOG, SQRT, ATAN2 = 73, 75, 156
BOOL = 6


def of(code: int, made: int, *given: int) -> bytes:
    """Return a model of one operation."""
    tensors = [TestTensor(f"x{place}", [3], kind) for place, kind in enumerate((*given, made))]
    inputs = list(range(len(given)))
    return write_tflite(tensors, [Node(code, inputs, [len(given)])], inputs, [len(given)])


@pytest.mark.parametrize(
    ("code", "made", "given"),
    [
        (ADD, FLOAT32, (FLOAT32, FLOAT32)),
        (ADD, INT64, (INT64, INT64)),
        (DIV, FLOAT32, (FLOAT32, FLOAT32)),
        (CAST, FLOAT32, (INT64,)),
        (CAST, INT32, (INT64,)),
        (CAST, BOOL, (FLOAT32,)),
        (GATHER, FLOAT32, (FLOAT32, INT32)),
    ],
)
def test_what_computes_the_same_for_all_finite_numbers_is_known(code: int, made: int, given: tuple[int, ...]) -> None:
    refuse_unknown(check_tflite(of(code, made, *given)))


@pytest.mark.parametrize(
    ("code", "made", "given", "named"),
    [
        (FLOOR_MOD, INT32, (INT32, INT32), "FLOOR_MOD"),  # LiteRT dies of the least integer and minus one
        (SIN, FLOAT32, (FLOAT32,), "SIN"),
        (DIV, INT32, (INT32, INT32), "DIV of int32"),
        (POW, INT32, (INT32, INT32), "POW"),
        (POW, FLOAT32, (FLOAT32, FLOAT32), "POW"),  # the largest number where TensorFlow's is infinite
        (ATAN2, FLOAT32, (FLOAT32, FLOAT32), "ATAN2"),
        (CAST, INT32, (FLOAT32,), "CAST of float32 to int32"),
        (GATHER, FLOAT32, (FLOAT32, INT64), "GATHER with indices of int64"),
    ],
)
def test_what_does_not_is_named_with_its_type(code: int, made: int, given: tuple[int, ...], named: str) -> None:
    with pytest.raises(UnsupportedModelError, match=f": {named};"):
        refuse_unknown(check_tflite(of(code, made, *given)))


def test_what_treats_no_numbers_otherwise_is_told_apart() -> None:
    """A maximum keeps NaN only where it comes first; the exponential of NaN is zero."""
    assert largest_known(check_tflite(of(ADD, FLOAT32, FLOAT32, FLOAT32))) is None
    assert largest_known(check_tflite(of(MAXIMUM, FLOAT32, FLOAT32, FLOAT32))) == LARGEST_FINITE
    assert largest_known(check_tflite(of(EXP, FLOAT32, FLOAT32))) == LARGEST_FINITE


def test_roots_and_logarithms_are_kept_from_the_largest_numbers() -> None:
    """A root of more than 8.5e37 is wrong by half, a logarithm ends at 88.38."""
    assert largest_known(check_tflite(of(SQRT, FLOAT32, FLOAT32))) == 1e15
    assert largest_known(check_tflite(of(LOG, FLOAT32, FLOAT32))) == 1e30


def asked(*kinds: str, by_value: bool = False) -> list[dict[str, np.ndarray]]:
    """Return what a source is asked at the edges that has inputs of these types."""
    ports = {f"x{place}": Port(TensorSpec(kind, (None, 6)), f"x{place}:0") for place, kind in enumerate(kinds)}
    template = {name: np.ones((2, 6), port.spec.dtype) for name, port in ports.items()}
    calls: list[dict[str, np.ndarray]] = []

    def call(name: str, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        calls.append(inputs)
        rows = abs(int(inputs["x0"].flat[0])) % 7 if by_value else 2
        return {"y": np.zeros((rows, 6), np.float32)}

    recording = Recording((RecordedCall(Request("s", template), {"y": np.zeros((2, 6))}),), frozenset(), ())
    record_edges(recording, {"s": ports}, call)
    return calls


def test_the_least_integer_meets_minus_one() -> None:
    least = np.iinfo(np.int32).min
    pairs = {pair for one in asked("int32", "int32") for pair in zip(one["x0"].flat, one["x1"].flat, strict=True)}
    assert (least, -1) in pairs
    assert any(np.iinfo(np.uint8).max in one["x0"] for one in asked("uint8"))


def test_integers_that_decide_shapes_stay_small() -> None:
    assert max(int(np.abs(one["x0"]).max()) for one in asked("int64", by_value=True)) <= 2_000_000


def test_numbers_too_small_for_the_usual_form_are_among_them() -> None:
    tiny = np.finfo(np.float32).tiny
    assert any(0 < np.abs(one["x0"]).max() < tiny for one in asked("float32"))


class Answering:
    """An engine that always answers the same."""

    def __init__(self, answer: float) -> None:
        spec = TensorSpec("float32", (None,))
        self.signatures = {"s": Signature({"x": Port(spec, "x:0")}, {"y": Port(spec, "y:0")})}
        self.notes: list[str] = []
        self._answer = answer

    def run(self, signature: str, inputs: object) -> list[np.ndarray]:
        return [np.array([self._answer], np.float32)]

    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("answer", "magnitude", "kept"), [(1.0001, 1e3, True), (1.001, 1e3, False), (1.0001, EVERYDAY, False)]
)
def test_large_numbers_may_differ_by_a_little_more_rounding(answer: float, magnitude: float, kept: bool) -> None:
    one = np.ones(1, np.float32)
    edge = Edge(RecordedCall(Request("s", {"x": one}), {"y": one}), magnitude)
    if kept:
        assert compare_edges(Answering(answer), [edge], {"float32": 5e-5}, 1e12) is None
        return
    with pytest.raises(OutputMismatchError, match="relative difference"):
        compare_edges(Answering(answer), [edge], {"float32": 5e-5}, 1e12)
