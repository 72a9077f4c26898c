"""`--engine auto`: candidates, the reasons why one is missing, and what is kept of the measurement."""

from __future__ import annotations

import numpy as np
import pytest

import glowplug
from glowplug.cli.description import measured_lines
from glowplug.convert.auto import choose
from glowplug.convert.calls.equivalence import Recording
from glowplug.convert.job import Order
from glowplug.core.errors import OutputMismatchError, UnsupportedModelError
from glowplug.core.manifest import Manifest, Port, Signature, TensorSpec

pytestmark = pytest.mark.tensorflow


def manifest(*sizes: int | None) -> Manifest:
    port = Port(TensorSpec("float32", sizes), "x:0")
    return Manifest("native", {"serving_default": Signature({"x": port}, {"y": port})}, {})


class Maker:
    """Stands for a job whose conversions end in a given way."""

    recording = None

    def __init__(self, **outcomes: Manifest | Exception) -> None:
        self.outcomes, self.made, self.stages = outcomes, [], []

    def enter(self, stage):
        self.stages.append(stage)

    def candidate(self, engine):
        outcome = self.outcomes.get(engine, manifest(None))
        if isinstance(outcome, Exception):
            raise outcome
        self.made.append(engine)
        return outcome

    def attempt(self, engine):
        raise AssertionError("nothing is to be measured")


def order(tmp_path, **wishes) -> Order:
    return Order(tmp_path, tmp_path, **{"prefer": "start", **wishes})


def test_any_takes_the_first_and_tries_no_other(tmp_path):
    maker = Maker()
    chosen = choose(maker, order(tmp_path, prefer="any"), tmp_path)
    assert (chosen.engine, chosen.reason, chosen.measured) == ("native", None, {})
    assert maker.made == ["native"]


def test_one_candidate_is_not_measured_and_the_reason_of_the_other_is_kept(tmp_path):
    pytest.importorskip("ai_edge_litert")
    maker = Maker(litert=UnsupportedModelError("LiteRT lacks an operation", seen="FFT"))
    chosen = choose(maker, order(tmp_path), tmp_path)
    assert chosen.engine == "native"
    assert "FFT" in chosen.measured["engines"]["litert"]["failed"]
    assert maker.stages == []


def test_what_native_cannot_take_is_packed_as_it_is(tmp_path):
    maker = Maker(native=OutputMismatchError("differs"))
    chosen = choose(maker, order(tmp_path), tmp_path)
    assert (chosen.engine, maker.made) == ("savedmodel", ["savedmodel"])
    assert "differs" in chosen.reason


def test_random_answers_cannot_be_compared_so_litert_is_not_tried(tmp_path):
    pytest.importorskip("ai_edge_litert")
    maker = Maker()
    maker.recording = Recording((), frozenset({"serving_default"}), ())
    chosen = choose(maker, order(tmp_path), tmp_path)
    assert maker.made == ["native"]
    assert "random" in chosen.measured["engines"]["litert"]["failed"]


@pytest.mark.parametrize(
    ("wishes", "declared", "words"),
    [
        ({"op_libraries": ("tensorflow_text",)}, manifest(None), "custom operations"),
        ({"keep_variables": True}, manifest(None), "variables"),
        ({}, manifest(1), "first size"),
    ],
)
def test_what_keeps_litert_from_being_tried(tmp_path, wishes, declared, words):
    pytest.importorskip("ai_edge_litert")
    maker = Maker(native=declared)
    chosen = choose(maker, order(tmp_path, **wishes), tmp_path)
    assert maker.made == ["native"]
    assert words in chosen.measured["engines"]["litert"]["failed"]


def test_two_candidates_are_measured_and_the_figures_are_kept(saved_model, tmp_path):
    pytest.importorskip("ai_edge_litert")
    packed = glowplug.pack(saved_model("dense"), tmp_path / "m.glow")
    engines = packed.manifest.measured["engines"]
    assert set(engines) == {"native", "litert"}
    assert all(one["first_ns"] > 0 and one["steady_ns"] > 0 and one["another_bytes"] > 0 for one in engines.values())
    assert packed.manifest.engine in engines
    assert "measure the engines" in packed.stages_ns
    lines = "\n".join(measured_lines(packed.manifest))
    assert f"{packed.manifest.engine}*" in lines
    with glowplug.load(tmp_path / "m.glow") as model:
        (port,) = model.signatures["serving_default"].inputs.values()
        shape = [size or 1 for size in port.spec.shape]
        assert np.isfinite(model(np.ones(shape, np.float32))).all()


@pytest.mark.parametrize(
    "record", [{}, {"prefer": 1}, {"prefer": "x", "engines": []}, {"prefer": "x", "engines": {"a": 1}}]
)
def test_a_record_that_is_not_ours_is_not_shown(record):
    from dataclasses import replace

    assert measured_lines(replace(manifest(None), measured=record)) == []
