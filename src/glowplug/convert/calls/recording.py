"""Records what a SavedModel answers to calls of every kind, so that a converted model can be compared with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from glowplug.bundle.warmup import Request
from glowplug.convert.graph.editor import GraphEditor
from glowplug.convert.graph.inline import inline_calls
from glowplug.convert.graph.likeness import computations
from glowplug.convert.source.saved_model import SavedModel
from glowplug.core.errors import TensorFlowError

from .encoded import string_makers
from .equivalence import RecordedCall, Recording
from .hopeless import is_hopeless, reached_ops, refuse_hopeless, refuse_python_code
from .samples import BATCHES, Style, has_open_batch, make_inputs, styles

_ENOUGH = 8  # calls that fail for a reason that has nothing to do with their input, or that are answered with nothing
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


def record(source: SavedModel, given: Sequence[Request]) -> Recording:
    """Call every signature of the source with inputs of several batch sizes, and with those that were given.

    Raises `UnanswerableModelError` if no input can make a signature answer.
    """
    graph = GraphEditor(source.meta_graph.graph_def)
    moved, effects = inline_calls(graph)
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
    alike = computations(graph, moved, effects, source.signatures)
    return Recording(tuple(calls), _random_signatures(source), tuple(unproven), alike)


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
    """Return the first style whose call is answered, and with something; of those that are not, the first one."""
    inputs = source.signatures[name].inputs
    answered: list[Style] = []
    for style in styles(inputs, makers):
        attempt = _call(source, Request(name, make_inputs(inputs, style, 2, seed=0)))
        calls.append(attempt)
        if len(calls) >= _ENOUGH and all(one.failure is not None and is_hopeless(one.failure) for one in calls):
            return None
        if attempt.says_something:
            return style
        if attempt.answer is not None:
            answered.append(style)
            if len(answered) >= _ENOUGH:
                break
    return answered[0] if answered else None


def _random_signatures(source: SavedModel) -> frozenset[str]:
    """Return the signatures that draw random numbers which differ from call to call."""
    found = set()
    for name in source.signatures:
        ops = reached_ops(source, name)
        if any(op.startswith(_RANDOM) and not op.startswith("StatefulPartitionedCall") for op in ops):
            found.add(name)
    return frozenset(found)
