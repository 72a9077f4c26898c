"""Proves that a converted model answers like its source, call by call, and keeps the record.

The source's answers are recorded first and the source is closed; then the converted model repeats the calls in the
same order, so that models with state go through the same states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glowplug.bundle.warmup import Request
from glowplug.convert.graph.editor import GraphEditor
from glowplug.convert.graph.inline import inline_calls
from glowplug.convert.source.saved_model import SavedModel
from glowplug.core.errors import GlowplugError, OutputMismatchError, TensorFlowError
from glowplug.loader.engine import Engine

from .encoded import string_makers
from .hopeless import is_hopeless, reached_ops, refuse_hopeless, refuse_python_code
from .samples import BATCHES, Style, has_open_batch, make_inputs, styles

# Largest difference allowed, relative to the largest magnitude of the output.
TOLERANCES = {
    "float64": 1e-9,
    "complex128": 1e-9,
    "float32": 1e-5,
    "complex64": 1e-5,
    "float16": 1e-2,
    "bfloat16": 5e-2,
}
_ENOUGH = 8  # calls that fail for a reason that has nothing to do with their input
_RANDOM: tuple[str, ...] = (
    "RandomUniform",
    "RandomStandardNormal",
    "TruncatedNormal",
    "ParameterizedTruncatedNormal",
    "Multinomial",
)
_RANDOM += (
    "RandomGamma",
    "RandomPoisson",
    "RandomShuffle",
    "Stateful",
    "NonDeterministicInts",
    "RngReadAndSkip",
)


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A call and what the source answered: outputs by name, or `None` where it refused, with the `failure`."""

    request: Request
    answer: Mapping[str, NDArray[Any]] | None
    failure: TensorFlowError | None = None


@dataclass(frozen=True, slots=True)
class Recording:
    """All calls, the signatures whose answers are random, and those that no input suited."""

    calls: tuple[RecordedCall, ...]
    random: frozenset[str]
    unproven: tuple[str, ...]


def record(source: SavedModel, given: Sequence[Request]) -> Recording:
    """Call every signature of the source with inputs of several batch sizes, and with those that were given.

    Raises `UnanswerableModelError` if no input can make a signature answer.
    """
    graph = GraphEditor(source.meta_graph.graph_def)
    inline_calls(graph)
    makers = string_makers(graph)
    calls: list[RecordedCall] = []
    unproven = []
    for name, signature in source.signatures.items():
        refuse_python_code(source, name)
        mine = [_call(source, Request(name, one.inputs)) for one in given if _suits(source, name, one)]
        style = _accepted_style(source, name, makers, mine)
        if style is not None:
            batches = BATCHES if has_open_batch(signature.inputs) else BATCHES[:2]
            for seed, batch in enumerate(batches):
                inputs = make_inputs(signature.inputs, style, batch, seed)
                mine.append(_call(source, Request(name, inputs)))
        if not any(call.answer is not None for call in mine):
            refuse_hopeless(source, name, [call.failure for call in mine if call.failure is not None])
            unproven.append(name)
        calls += mine
    return Recording(tuple(calls), _random_signatures(source), tuple(unproven))


def compare(engine: Engine, recording: Recording) -> dict[str, Any]:
    """Repeat the calls and return the record for the manifest. Raises `OutputMismatchError` at the first difference."""
    outputs: dict[str, dict[str, Any]] = {}
    counts: dict[str, int] = {}
    for call in recording.calls:
        name = call.request.signature
        answer = _repeat(engine, call)
        if call.answer is None or answer is None:
            continue
        counts[name] = counts.get(name, 0) + 1
        for key, expected in call.answer.items():
            entry = outputs.setdefault(f"{name}:{key}", {"dtype": str(expected.dtype), "max_abs": 0.0, "max_rel": 0.0})
            _compare_output(f"{name}:{key}", expected, answer[key], entry, random=name in recording.random)
    by_dtype: dict[str, dict[str, float]] = {}
    for entry in outputs.values():
        worst = by_dtype.setdefault(entry["dtype"], {"max_abs": 0.0, "max_rel": 0.0})
        for measure in worst:
            worst[measure] = max(worst[measure], entry[measure])
    record = {"calls": counts, "outputs": outputs, "dtypes": by_dtype, "random": sorted(recording.random)}
    return {**record, "unproven": list(recording.unproven)} if recording.unproven else record


def _call(source: SavedModel, request: Request) -> RecordedCall:
    try:
        return RecordedCall(request, source.call(request.signature, request.inputs))
    except TensorFlowError as error:
        return RecordedCall(request, None, error)


def _suits(source: SavedModel, name: str, request: Request) -> bool:
    """Say whether a request is for a signature, or for another one with the same inputs."""

    def kinds(signature: str) -> dict[str, str]:
        return {key: port.spec.dtype for key, port in source.signatures[signature].inputs.items()}

    return kinds(request.signature) == kinds(name)


def _accepted_style(source: SavedModel, name: str, makers: Any, calls: list[RecordedCall]) -> Style | None:
    inputs = source.signatures[name].inputs
    for style in styles(inputs, makers):
        attempt = _call(source, Request(name, make_inputs(inputs, style, 2, seed=0)))
        calls.append(attempt)
        if len(calls) >= _ENOUGH and all(one.failure is not None and is_hopeless(one.failure) for one in calls):
            return None
        if attempt.answer is not None:
            return style
    return None


def _repeat(engine: Engine, call: RecordedCall) -> dict[str, NDArray[Any]] | None:
    name, signature = call.request.signature, engine.signatures[call.request.signature]
    arrays = [call.request.inputs[key] for key in signature.inputs]
    try:
        return dict(zip(signature.outputs, engine.run(name, arrays), strict=True))
    except GlowplugError as error:
        if call.answer is None:
            return None
        raise OutputMismatchError(
            "the converted model refuses a call that its source answers", seen=f"{name}: {error}"
        ) from error


def _compare_output(
    where: str, expected: NDArray[Any], seen: NDArray[Any], entry: dict[str, Any], *, random: bool
) -> None:
    if expected.shape != seen.shape or expected.dtype != seen.dtype:
        raise _differs(where, f"{seen.dtype}{list(seen.shape)} instead of {expected.dtype}{list(expected.shape)}")
    if random or not expected.size:
        return
    tolerance = TOLERANCES.get(str(expected.dtype))
    if tolerance is None:
        different = int(np.sum(expected != seen))
        if different:
            raise _differs(where, f"{different} of {expected.size} elements of {expected.dtype} differ")
        return
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    first, second = expected.astype(wide), seen.astype(wide)
    finite = np.isfinite(first)
    if not np.array_equal(first[~finite], second[~finite], equal_nan=True):
        raise _differs(where, "NaN or infinity in other places")
    first, second = first[finite], second[finite]
    if not first.size:
        return
    absolute = float(np.max(np.abs(first - second)))
    relative = absolute / max(float(np.max(np.abs(first))), np.finfo(np.float32).tiny)
    entry["max_abs"], entry["max_rel"] = max(entry["max_abs"], absolute), max(entry["max_rel"], relative)
    if not relative <= tolerance:
        raise _differs(where, f"relative difference {relative:.2g}, allowed for {expected.dtype} is {tolerance:.0e}")


def _differs(where: str, seen: str) -> OutputMismatchError:
    return OutputMismatchError("the converted model and its source give different answers", seen=f"{where}: {seen}")


def _random_signatures(source: SavedModel) -> frozenset[str]:
    """Return the signatures that draw random numbers which differ from call to call."""
    found = set()
    for name in source.signatures:
        ops = reached_ops(source, name)
        if any(op.startswith(_RANDOM) and not op.startswith("StatefulPartitionedCall") for op in ops):
            found.add(name)
    return frozenset(found)
