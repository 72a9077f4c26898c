"""Differences that only show at the edges are found there, whoever answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from glowplug.bundle.warmup import Request
from glowplug.convert.calls.edges import compare_edges, record_edges
from glowplug.convert.calls.equivalence import RecordedCall, Recording, compare, repeat
from glowplug.core.errors import InputError, OutputMismatchError
from glowplug.core.manifest import Port, Signature, TensorSpec
from glowplug.core.tolerances import TOLERANCES

LEAST = 1e12


class Answering:
    """An engine that is a function of numpy's."""

    notes: tuple[str, ...] = ()

    def __init__(self, dtype: str, function: Callable[[Any], Any], shape: tuple[int | None, ...] = (None, 4)) -> None:
        port = Port(TensorSpec(dtype, shape), "x")
        self.signatures = {"serving_default": Signature({"x": port}, {"y": port})}
        self._function = function

    def run(self, signature: str, inputs: Any) -> list[Any]:
        with np.errstate(all="ignore"):
            return [np.asarray(self._function(inputs[0]))]

    def close(self) -> None:
        """There is nothing to free."""

    def call(self, name: str, inputs: dict[str, Any]) -> dict[str, Any]:
        return {"y": self.run(name, [inputs["x"]])[0]}


def proven(source: Answering, converted: Answering) -> float | None:
    spec = source.signatures["serving_default"].inputs["x"].spec
    x = np.ones((2, *(size or 6 for size in (spec.shape or ())[1:])), spec.dtype)
    call = RecordedCall(Request("serving_default", {"x": x}), source.call("serving_default", {"x": x}))
    ports = {name: one.inputs for name, one in source.signatures.items()}
    edges = record_edges(Recording((call,), frozenset(), ()), ports, source.call)
    return compare_edges(converted, edges, TOLERANCES, LEAST)


def refusing(function: Callable[[Any], bool]) -> Callable[[Any], Any]:
    def run(x: Any) -> Any:
        if function(x):
            raise InputError("these are refused")
        return x

    return run


def same(x: Any) -> Any:
    return x


FOUND: dict[str, tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "a bound": ("float32", same, lambda x: np.minimum(x, np.float32(88))),
    "zero": ("float32", same, lambda x: np.where(x == 0, np.float32(1), x)),
    "halves": ("float32", np.round, lambda x: np.floor(x + np.float32(0.5))),
    "tiny numbers": ("float32", same, lambda x: np.where(np.abs(x) < 1e-5, np.float32(0), x)),
    "negative integers": ("int32", same, np.abs),
    "integers that overflow": (
        "int32",
        lambda x: x * x,
        lambda x: np.minimum(x.astype(np.int64) ** 2, 2**31 - 1).astype("i"),
    ),
    "wide integers": ("int64", same, lambda x: x.astype(np.int32).astype(np.int64)),
    "a mask of nothing": ("bool", same, lambda x: x | ~x.any()),
    "a refusal": ("int32", refusing(lambda x: (x < 0).any()), same),
    "an answer": ("int32", same, refusing(lambda x: (x < 0).any())),
}


@pytest.mark.parametrize("name", FOUND)
def test_a_difference_at_an_edge_is_found(name: str) -> None:
    dtype, source, converted = FOUND[name]
    with pytest.raises(OutputMismatchError):
        proven(Answering(dtype, source), Answering(dtype, converted))
    assert proven(Answering(dtype, source), Answering(dtype, source)) is None


def test_other_sizes_of_open_dimensions_are_tried() -> None:
    source = Answering("float32", same, (None, None))
    with pytest.raises(OutputMismatchError):
        proven(source, Answering("float32", lambda x: x[:, :6], (None, None)))


def test_what_is_no_number_is_remembered_and_not_refused() -> None:
    def without_nan(x: Any) -> Any:
        return np.nan_to_num(x, nan=0.0, posinf=np.inf, neginf=-np.inf)

    assert proven(Answering("float32", same), Answering("float32", without_nan)) == 3e38
    bounded = Answering("float32", lambda x: np.clip(x, np.float32(-1e20), np.float32(1e20)))
    assert proven(Answering("float32", same), bounded) == 1e18


def test_what_is_no_number_is_tried_in_several_places() -> None:
    """An answer may depend on where it is, and on what is beside it."""

    def where_first(x: Any) -> Any:
        return np.where(np.isnan(x[:, :2]), x[:, :2], np.fmax(x[:, :2], x[:, 2:]))

    source = Answering("float32", lambda x: np.maximum(x[:, :2], x[:, 2:]))
    assert proven(source, Answering("float32", where_first)) == 3e38


def test_what_rounding_does_to_the_source_is_no_difference() -> None:
    def steep(x: Any) -> Any:  # beyond some thousands the sine of a rounded number says nothing of that of the number
        return np.where(np.abs(x) < 3e4, np.sin(x.astype(np.float64)), x).astype(np.float32)

    nearly = Answering("float32", lambda x: steep(x * np.float32(1 + 1e-6)))
    assert proven(Answering("float32", steep), nearly) is None


def test_sixteen_bits_have_no_large_numbers_but_finite_ones() -> None:
    source = Answering("float16", same)
    with pytest.raises(OutputMismatchError):
        proven(source, Answering("float16", lambda x: np.minimum(x, np.float16(1000))))
    assert proven(source, source) is None


@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_a_batch_of_none_that_the_source_answers_may_not_be_refused(dtype):
    """An answer without elements is an answer; one that is no number is none."""
    converted = Answering(dtype, refusing(lambda x: True))
    for x, refused in ((np.zeros((0, 4), dtype), False), (np.full((2, 4), np.nan, "float32"), True)):
        call = RecordedCall(Request("serving_default", {"x": x}), {"y": x})
        if refused:
            assert repeat(converted, call, refusals=True) is None
        else:
            with pytest.raises(OutputMismatchError, match="refuses a call that its source answers"):
                repeat(converted, call, refusals=True)


def test_a_batch_of_none_in_a_shape_that_the_signature_excludes_says_nothing() -> None:
    """TensorFlow's convolutions answer a batch without rows in the shape of their input."""
    x, y = np.zeros((0, 4), "float32"), np.ones((2, 4), "float32")
    converted = Answering("float32", same)
    right = RecordedCall(Request("serving_default", {"x": y}), {"y": y})
    undeclared = RecordedCall(Request("serving_default", {"x": x}), {"y": np.zeros((0, 7), "float32")})
    record = compare(converted, Recording((right, undeclared), frozenset(), ()))
    assert record["calls"] == {"serving_default": 1}
    full = RecordedCall(Request("serving_default", {"x": y}), {"y": np.zeros((2, 7), "float32")})
    with pytest.raises(OutputMismatchError):
        compare(converted, Recording((full,), frozenset(), ()))


def test_what_the_source_refuses_may_be_answered_with_nothing_only() -> None:
    """The first row of a batch without rows is whatever lies in memory."""
    call = RecordedCall(Request("serving_default", {"x": np.zeros((0, 4), "float32")}), None)
    assert repeat(Answering("float32", same), call, refusals=True) is not None
    with pytest.raises(OutputMismatchError, match="answers a call that its source refuses"):
        repeat(Answering("float32", lambda x: np.ones(4, "float32")), call, refusals=True)
