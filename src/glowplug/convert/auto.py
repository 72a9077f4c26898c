"""`--engine auto`: makes a candidate for each engine that can take the model, measures them, and keeps the best."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from glowplug.bench.contestant import Question
from glowplug.bench.contestants.start import write_arrays
from glowplug.core.errors import (
    GlowplugError,
    OpNotAllowedError,
    OutputMismatchError,
    TensorFlowError,
    UnsupportedModelError,
)
from glowplug.core.manifest import Engine, Manifest

from .calls.typical import typical_request
from .choice import Figures, as_record, best, contestant_for, measure

if TYPE_CHECKING:
    from .calls.equivalence import Recording
    from .job import Order

_NOT_NATIVE = (UnsupportedModelError, OpNotAllowedError, OutputMismatchError, TensorFlowError)


class Candidates(Protocol):
    """Who makes the bundle of each engine: `Job`."""

    def candidate(self, engine: Engine) -> Manifest:
        """Make the bundle of one engine, proven equal to the source; raise what says why that cannot be."""

    def attempt(self, engine: Engine) -> Path:
        """Return the folder of that bundle."""

    def enter(self, stage: str) -> None:
        """Tell what comes next."""

    @property
    def recording(self) -> Recording | None:
        """The calls with which they were proven equal."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The engine, why `native` cannot take the model where it cannot, and what the manifest keeps of the measuring."""

    engine: Engine
    reason: str | None
    measured: Mapping[str, Any]


def choose(job: Candidates, order: Order, scratch: Path) -> Chosen:
    """Make the candidates and choose among them.

    What `native` cannot take is packed as it is, and LiteRT is not asked: its converter computes ahead of time what it
    can, and that may be what `native` refuses to run, such as a look at the file system.
    """
    try:
        declared = job.candidate("native")
    except _NOT_NATIVE as error:
        job.candidate("savedmodel")
        return Chosen("savedmodel", _one_line(error), {})
    if order.prefer == "any":
        return Chosen("native", None, {})
    obstacle = _obstacle_to_litert(order, declared, job.recording)
    if not obstacle:
        try:
            job.candidate("litert")
        except (GlowplugError, OSError) as error:  # whatever it is, a full disk as well, there is another engine
            obstacle = _one_line(error)
    if obstacle:
        return Chosen("native", None, as_record([Figures("litert", failed=obstacle)], order.prefer))
    job.enter("measure the engines")
    rows = _measure(job, ("native", "litert"), order, scratch)
    engine: Engine = "litert" if best(rows, order.prefer) == "litert" else "native"
    return Chosen(engine, None, as_record(rows, order.prefer))


def _measure(job: Candidates, engines: tuple[Engine, ...], order: Order, scratch: Path) -> list[Figures]:
    assert job.recording is not None
    request = typical_request(job.recording, given=1 if order.warmup else 0)
    if request is None:
        return [Figures(engine, failed="no call to measure it with") for engine in engines]
    folder = scratch / "measured"
    folder.mkdir()
    question = Question(request.signature, tuple(write_arrays(str(folder), dict(request.inputs))))
    candidates = [contestant_for(engine, job.attempt(engine), sys.path, order.op_libraries) for engine in engines]
    return measure(candidates, question, order.prefer)


def _obstacle_to_litert(order: Order, declared: Manifest, recording: Recording | None) -> str:
    """Return why LiteRT is not even tried, in one line, or nothing."""
    if find_spec("ai_edge_litert") is None:
        return "LiteRT is not installed: pip install 'glowplug[litert]'"
    if order.op_libraries:
        return "it needs custom operations, which are libraries of TensorFlow's"
    if order.keep_variables:
        return "variables are to be kept, which a bundle of LiteRT has no place for"
    if recording is not None and recording.random:
        return "it draws random numbers, which cannot be compared"
    inputs = [port.spec for one in declared.signatures.values() for port in one.inputs.values()]
    if any(spec.shape is None or (spec.shape and spec.shape[0] is not None) for spec in inputs):
        return "an input declares its first size, and TensorFlow takes others, too, where LiteRT would not"
    return ""


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
