"""Records what a SavedModel answers to calls of every kind, so that a converted model can be compared with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from glowplug.bundle.warmup import Request
from glowplug.convert.graph.editor import GraphEditor
from glowplug.convert.graph.inline import inline_calls
from glowplug.convert.graph.likeness import computations
from glowplug.convert.source.saved_model import SavedModel
from glowplug.core.errors import OutputMismatchError, TensorFlowError
from glowplug.core.tolerances import TOLERANCES

from .encoded import string_makers
from .equivalence import RecordedCall, Recording, check_output
from .hopeless import is_hopeless, reached_ops, refuse_hopeless, refuse_python_code
from .memory import other_memory
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


def record(source: SavedModel, given: Sequence[Request], twin: SavedModel | None = None) -> Recording:
    """Call every signature of the source with inputs of several batch sizes, and with those that were given.

    A call that a twin, the same model in a session of its own, answers otherwise in other memory proves nothing, and is
    left out. Raises `UnanswerableModelError` if no input can make a signature answer.
    """
    random = _random_signatures(source)
    left_out: list[RecordedCall] = []

    def ask(request: Request) -> list[RecordedCall]:
        call = _call(source, request)
        if twin is None or request.signature in random or _is_confirmed(call, twin):
            return [call]
        left_out.append(call)
        return []

    graph = GraphEditor(source.meta_graph.graph_def)
    moved, effects = inline_calls(graph)
    makers = string_makers(graph)
    calls: list[RecordedCall] = []
    unproven = []
    for name, signature in source.signatures.items():
        refuse_python_code(source, name)
        mine = [call for one in given if _suits(source, name, one) for call in ask(Request(name, one.inputs))]
        style = _accepted_style(source, name, makers, mine, ask)
        if style is not None:
            batches = BATCHES if has_open_batch(signature.inputs) else BATCHES[:2]
            for seed, batch in enumerate(batches):
                inputs = make_inputs(signature.inputs, style, batch, seed)
                mine += ask(Request(name, inputs))
        if not any(call.answer is not None for call in mine):
            refuse_hopeless(source, name, [call.failure for call in mine if call.failure is not None])
            unproven.append(name)
        calls += mine
    alike = computations(graph, moved, effects, source.signatures)
    return Recording(tuple(calls), random, tuple(unproven), alike, len(left_out))


def _call(source: SavedModel, request: Request) -> RecordedCall:
    try:
        return RecordedCall(request, source.call(request.signature, request.inputs))
    except TensorFlowError as error:
        return RecordedCall(request, None, error)


def _is_confirmed(call: RecordedCall, twin: SavedModel) -> bool:
    """Say whether the model itself answers so, and not what happened to be in its memory."""
    with other_memory():
        again = _call(twin, call.request)
    if call.answer is None or again.answer is None:
        return call.answer is again.answer
    try:
        for key, expected in call.answer.items():
            check_output(key, expected, again.answer[key], TOLERANCES)
    except OutputMismatchError:
        return False
    return True


def _suits(source: SavedModel, name: str, request: Request) -> bool:
    """Say whether a request is for a signature, or for another one with the same inputs."""

    def kinds(signature: str) -> dict[str, str]:
        return {key: port.spec.dtype for key, port in source.signatures[signature].inputs.items()}

    return kinds(request.signature) == kinds(name)


def _accepted_style(
    source: SavedModel, name: str, makers: Any, calls: list[RecordedCall], ask: Callable[[Request], list[RecordedCall]]
) -> Style | None:
    """Return the first style whose call is answered, and with something; of those that are not, the first one."""
    inputs = source.signatures[name].inputs
    answered: list[Style] = []
    for style in styles(inputs, makers):
        attempts = ask(Request(name, make_inputs(inputs, style, 2, seed=0)))
        calls += attempts
        if len(calls) >= _ENOUGH and all(one.failure is not None and is_hopeless(one.failure) for one in calls):
            return None
        if any(attempt.says_something for attempt in attempts):
            return style
        if any(attempt.answer is not None for attempt in attempts):
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
