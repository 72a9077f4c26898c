"""Calls at the edges of what a model can be given: other kernels may agree on everyday numbers and not there.

From one call that the source answers, others are made with the same shapes, and with other sizes where they are open:
zeros, halves, tiny, large and the largest numbers, those that are none, negative and large integers. Where numbers are
large, rounding alone may change an answer, and how much the source itself can tell: it is asked again with inputs that
differ by less than rounding does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glowplug.bundle.warmup import Request
from glowplug.core.errors import GlowplugError, OutputMismatchError
from glowplug.core.manifest import Port
from glowplug.loader.engines.engine import Engine

from .equivalence import RecordedCall, Recording, check_output, repeat, undeclared

Inputs = dict[str, NDArray[Any]]
Answer = Mapping[str, NDArray[Any]]
Make = Callable[[NDArray[Any]], NDArray[Any]]

EVERYDAY = 1.0
NOT_FINITE = float("inf")
LARGEST_FINITE = 3e38  # that is tried
LARGEST_EXPONENT = 88.7  # whose exponential is finite in TensorFlow: some kernels' ends a little below it
# Magnitudes of floating-point inputs, each a call; beyond the first ones a model may be kept from being called.
LARGE = (30.0, 1e3, 1e6, 1e12, 1e18, 1e30)
_FLOATING = "fV"  # kinds of numpy's types; bfloat16 is of the second one
_ROUNDING = 2e-5
_LARGE_TOLERANCE = 4  # times the usual one: fifty layers on numbers of 1e3 were seen to differ by 5.9e-5
_LARGEST_HALF = 65504.0
_INTEGERS = (0, 1, -1, 100, 2_000_000)  # bounds; a shape that follows from one must still fit into memory


@dataclass(frozen=True, slots=True)
class Edge:
    """A call at an edge: the magnitude of its floating-point inputs, and what rounding makes of the source's answer."""

    call: RecordedCall
    magnitude: float
    rounded: tuple[Answer, ...] = ()


def record_edges(
    recording: Recording, signatures: Mapping[str, Mapping[str, Port]], call: Callable[[str, Inputs], Answer]
) -> list[Edge]:
    """Ask the source, through `call`, for its answers at the edges; `signatures` have the inputs of each."""
    found = []
    for name, ports in signatures.items():
        template = _template(recording, name)
        if template is None or name in recording.random:
            continue
        edges = [_record(call, name, *one) for one in edge_inputs(template, ports)]
        if not _shapes_follow_values(edges):  # which would need as much memory as they say
            wide = [*_beyond_32_bits(template), *_extremes(template)]
            edges += [_record(call, name, EVERYDAY, one) for one in wide]
        found += edges
    return found


def _record(call: Callable[[str, Inputs], Answer], name: str, magnitude: float, inputs: Inputs) -> Edge:
    rounded = [_answer(call, name, one) for one in _rounded(inputs)] if 1 < magnitude < NOT_FINITE else []
    recorded = RecordedCall(Request(name, inputs), _answer(call, name, inputs))
    return Edge(recorded, magnitude, tuple(one for one in rounded if one is not None))


def _shapes_follow_values(edges: Sequence[Edge]) -> bool:
    """Say whether calls with inputs of the same shapes have answers of several."""
    seen: dict[object, object] = {}
    for edge in edges:
        if edge.call.answer is not None:
            given, got = (
                tuple(array.shape for array in arrays.values())
                for arrays in (edge.call.request.inputs, edge.call.answer)
            )
            if seen.setdefault(given, got) != got:
                return True
    return False


def compare_edges(engine: Engine, edges: Sequence[Edge], tolerances: Mapping[str, float], least: float) -> float | None:
    """Return up to which magnitude of floating-point inputs the engine answers as the source does; None for any.

    Raises `OutputMismatchError` where that is less than `least`.
    """
    proven: float | None = None
    for edge in sorted(edges, key=lambda one: one.magnitude):
        if proven is not None and edge.magnitude > proven:
            break
        try:
            _compare(engine, edge, tolerances)
        except GlowplugError:
            if edge.magnitude <= least:
                raise
            proven = max((one.magnitude for one in edges if one.magnitude < edge.magnitude), default=EVERYDAY)
    return proven


def edge_inputs(template: Mapping[str, NDArray[Any]], ports: Mapping[str, Port]) -> Iterator[tuple[float, Inputs]]:
    """Yield inputs like those of a call, and the magnitude of the floating-point ones."""
    random = np.random.default_rng(len(template))
    kinds = {array.dtype.kind for array in template.values()}

    def changed(wanted: str, make: Make) -> Inputs:
        return {name: make(array) if array.dtype.kind in wanted else array for name, array in template.items()}

    def redrawn(make: Make) -> Make:
        return lambda x: _of_type(make(random.standard_normal(x.shape)), x.dtype)

    def drawn(bound: int) -> Make:
        return lambda x: _integers(x, bound, random)

    def filled(truth: bool) -> Make:
        return lambda x: np.full_like(x, truth)

    yield from ((EVERYDAY, one) for one in _other_sizes(template, ports))
    if kinds & set(_FLOATING):
        yield from ((magnitude, changed(_FLOATING, redrawn(make))) for magnitude, make in _float_makers())
        yield from ((NOT_FINITE, one) for one in _without_numbers(template, random))
    if kinds & {"i", "u"}:
        yield from ((EVERYDAY, changed("iu", drawn(bound))) for bound in _INTEGERS)
    if "b" in kinds:
        yield from ((EVERYDAY, changed("b", filled(truth))) for truth in (False, True))


def _float_makers() -> Iterator[tuple[float, Make]]:
    """Yield what makes other numbers of normally distributed ones, and their magnitude."""

    def scaled(scale: float) -> Make:
        return lambda x: x * scale

    def strewn(strange: float) -> Make:
        return lambda x: _strewn(x, strange)

    yield EVERYDAY, np.zeros_like
    yield EVERYDAY, lambda x: np.round(4 * x) / 2
    yield from ((EVERYDAY, scaled(scale)) for scale in (1e-40, 1e-20, 1e-6))
    yield LARGEST_EXPONENT, lambda x: np.copysign(LARGEST_EXPONENT - 0.3 * (np.abs(x) % 1), x)
    yield from ((scale, scaled(scale)) for scale in LARGE)
    yield LARGEST_FINITE, lambda x: np.sign(x) * LARGEST_FINITE
    yield from ((NOT_FINITE, strewn(strange)) for strange in (np.nan, np.inf, -np.inf))


def _without_numbers(template: Mapping[str, NDArray[Any]], random: np.random.Generator) -> Iterator[Inputs]:
    """Yield numbers among which others are none, in all inputs at once and in each alone.

    The larger of two is NaN for some kernels only where the first one is, and the least of a row where it begins so.
    """
    floating = [name for name, array in template.items() if array.dtype.kind in _FLOATING]

    def mixed(names: Sequence[str], *strange: float) -> Inputs:
        made = dict(template)
        for name in floating:
            numbers = random.standard_normal(template[name].shape)
            if name in names:
                numbers = np.where(random.random(numbers.shape) < 0.3, random.choice(strange, numbers.shape), numbers)
            made[name] = _of_type(numbers, template[name].dtype)
        return made

    yield mixed(floating, np.nan)
    yield mixed(floating, np.nan, np.inf, -np.inf)
    if len(floating) > 1:
        yield from (mixed([name], np.nan) for name in floating)


def _beyond_32_bits(template: Mapping[str, NDArray[Any]]) -> Iterator[Inputs]:
    """Yield integers whose lower 32 bits look like everyday ones."""
    wide = {name for name, array in template.items() if array.dtype.kind in "iu" and array.dtype.itemsize == 8}
    if wide:
        yield {name: array + (1 << 32) if name in wide else array for name, array in template.items()}


def _extremes(template: Mapping[str, NDArray[Any]]) -> Iterator[Inputs]:
    """Yield the least and the largest integers; where there are several inputs, the least one meets minus one."""
    integers = [name for name, array in template.items() if array.dtype.kind in "iu"]
    if not integers:
        return
    made = dict(template)
    for place, name in enumerate(integers):
        array = template[name]
        limits = np.iinfo(array.dtype)
        least, most, minus = limits.min, limits.max, max(limits.min, -1)
        row = (minus, minus, 1, least, least, most) if place % 2 else (least, most, least, most, 0, minus)
        made[name] = np.resize(np.array(row, array.dtype), array.shape)
    yield made


def _other_sizes(template: Mapping[str, NDArray[Any]], ports: Mapping[str, Port]) -> Iterator[Inputs]:
    """Yield the same with other sizes of open dimensions, which stay equal where they were."""
    open_places = {
        name: {place for place, size in enumerate(port.spec.shape or ()) if place and size is None}
        for name, port in ports.items()
    }
    if not any(open_places.values()):
        return
    others: tuple[Callable[[int], int], ...] = (lambda size: 2 * size + 1, lambda size: max(1, size // 2))
    for other in others:
        yield {
            name: np.resize(
                array, [other(size) if place in open_places[name] else size for place, size in enumerate(array.shape)]
            )
            for name, array in template.items()
        }


def _template(recording: Recording, name: str) -> Mapping[str, NDArray[Any]] | None:
    """Return the inputs of the smallest call that the source answers, one of several rows where there is one."""
    calls = [
        call
        for call in recording.calls
        if call.request.signature == name
        and call.answer is not None
        and all(array.size for array in call.request.inputs.values())
    ]
    answered = [call.request.inputs for call in calls if call.says_something] or [call.request.inputs for call in calls]
    several = [one for one in answered if any(array.ndim and len(array) > 1 for array in one.values())]
    return min(several or answered, key=lambda one: sum(array.nbytes for array in one.values()), default=None)


def _rounded(inputs: Inputs) -> Iterator[Inputs]:
    signs = np.random.default_rng(0)
    for draw in (lambda shape: 1.0, lambda shape: signs.choice((-1.0, 1.0), shape)):
        with np.errstate(all="ignore"):
            yield {
                name: (array * (1 + _ROUNDING * draw(array.shape))).astype(array.dtype)
                if array.dtype.kind in _FLOATING
                else array
                for name, array in inputs.items()
            }


def _of_type(array: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return finite numbers as finite ones: 16 bits have no large ones."""
    if dtype == np.float16:
        array = np.where(np.isfinite(array), np.clip(array, -_LARGEST_HALF, _LARGEST_HALF), array)
    with np.errstate(all="ignore"):
        return array.astype(dtype)


def _strewn(array: NDArray[Any], strange: float) -> NDArray[Any]:
    """Put a number that is none into the middle of the first row."""
    array = np.array(array)
    array.reshape(-1)[array.size // (2 * len(array)) if array.ndim else 0] = strange
    return array


def _integers(array: NDArray[Any], bound: int, random: np.random.Generator) -> NDArray[Any]:
    least, most = (max(np.iinfo(array.dtype).min, -abs(bound)), min(np.iinfo(array.dtype).max, bound))
    if abs(bound) <= 1:
        return np.full_like(array, max(least, bound))
    return random.integers(least, most, array.shape, endpoint=True).astype(array.dtype)


def _answer(call: Callable[[str, Inputs], Answer], name: str, inputs: Inputs) -> Answer | None:
    try:
        return call(name, inputs)
    except GlowplugError:
        return None


def _compare(engine: Engine, edge: Edge, tolerances: Mapping[str, float]) -> None:
    try:
        answer = repeat(engine, edge.call, refusals=True)
    except OutputMismatchError:
        if edge.call.answer and undeclared(engine.signatures[edge.call.request.signature], edge.call.answer):
            return  # it refuses what is too small
        raise
    if edge.call.answer is None or answer is None:
        return
    if edge.magnitude > EVERYDAY:
        tolerances = {dtype: _LARGE_TOLERANCE * one for dtype, one in tolerances.items()}
    for key, expected in edge.call.answer.items():
        where = f"{edge.call.request.signature}:{key} for {_described(edge.call.request.inputs)}"
        check_output(where, expected, answer[key], tolerances, [one[key] for one in edge.rounded])


def _described(inputs: Mapping[str, NDArray[Any]]) -> str:
    """Return the ranges of inputs."""
    shown = []
    for name, array in inputs.items():
        if array.size and array.dtype.kind in "iufV":
            values = array.astype(np.float64)
            shown.append(f"{name} from {values.min():.3g} to {values.max():.3g}")
    return " and ".join(shown) or "other sizes"
