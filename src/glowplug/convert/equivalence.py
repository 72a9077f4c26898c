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
from glowplug.core.errors import GlowplugError, OutputMismatchError, TensorFlowError, UnsupportedModelError
from glowplug.loader.engine import Engine

from .editor import GraphEditor
from .examples import example_makers
from .inline import inline_calls
from .samples import BATCHES, Style, has_open_batch, make_inputs, styles, words
from .saved_model import SavedModel

# Largest difference allowed, relative to the largest magnitude of the output.
TOLERANCES = {
    "float64": 1e-9,
    "complex128": 1e-9,
    "float32": 1e-5,
    "complex64": 1e-5,
    "float16": 1e-2,
    "bfloat16": 5e-2,
}
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
    """A call and what the source answered: outputs by name, or `None` where it refused."""

    request: Request
    answer: Mapping[str, NDArray[Any]] | None


@dataclass(frozen=True, slots=True)
class Recording:
    """All calls, and the signatures whose answers are random."""

    calls: tuple[RecordedCall, ...]
    random: frozenset[str]


def record(source: SavedModel, given: Sequence[Request], *, need_all: bool) -> Recording:
    """Call every signature of the source with inputs of several batch sizes, and with those that were given.

    With `need_all`, a signature for which no input could be found raises `UnsupportedModelError`.
    """
    graph = GraphEditor(source.meta_graph.graph_def)
    inline_calls(graph)
    makers = (*example_makers(graph), words)
    calls: list[RecordedCall] = []
    for name, signature in source.signatures.items():
        mine = [request for request in given if request.signature == name]
        calls += [_call(source, request) for request in mine]
        style = _accepted_style(source, name, makers, calls)
        if style is not None:
            batches = BATCHES if has_open_batch(signature.inputs) else BATCHES[:2]
            for seed, batch in enumerate(batches):
                inputs = make_inputs(signature.inputs, style, batch, seed)
                calls.append(_call(source, Request(name, inputs)))
        if need_all and not any(call.answer is not None for call in calls if call.request.signature == name):
            raise UnsupportedModelError(
                "no made-up input suits a signature, so its answers cannot be compared",
                seen=f"{name}({', '.join(f'{k}: {p.spec}' for k, p in signature.inputs.items())})",
                remedy="give a real request with --warmup",
            )
    return Recording(tuple(calls), _random_signatures(source))


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
    return {"calls": counts, "outputs": outputs, "dtypes": by_dtype, "random": sorted(recording.random)}


def _call(source: SavedModel, request: Request) -> RecordedCall:
    try:
        return RecordedCall(request, source.call(request.signature, request.inputs))
    except TensorFlowError:
        return RecordedCall(request, None)


def _accepted_style(source: SavedModel, name: str, makers: Any, calls: list[RecordedCall]) -> Style | None:
    inputs = source.signatures[name].inputs
    for style in styles(inputs, makers):
        attempt = _call(source, Request(name, make_inputs(inputs, style, 2, seed=0)))
        calls.append(attempt)
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
    graph = GraphEditor(source.meta_graph.graph_def)
    found = set()
    for name, signature in source.signatures.items():
        part = GraphEditor(source.meta_graph.graph_def)
        part.keep(graph.slice(port.tensor for port in signature.outputs.values()))
        functions = part.reached_functions()
        nodes = [*part.nodes.values(), *(node for f in functions for node in graph.library[f].node_def)]
        if any(node.op.startswith(_RANDOM) and not node.op.startswith("StatefulPartitionedCall") for node in nodes):
            found.add(name)
    return frozenset(found)
