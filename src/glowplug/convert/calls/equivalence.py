"""Proves that a converted model answers like its source, call by call, and keeps the record.

The source's answers are recorded first (`recording`) and the source is closed; then the converted model repeats the
calls in the same order, so that models with state go through the same states. Nothing here needs TensorFlow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glowplug.bundle.warmup import Request
from glowplug.core.errors import GlowplugError, OutputMismatchError, TensorFlowError
from glowplug.core.manifest import Signature
from glowplug.core.tolerances import TOLERANCES, distance
from glowplug.loader.engines.engine import Engine


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A call and what the source answered: outputs by name, or `None` where it refused, with the `failure`."""

    request: Request
    answer: Mapping[str, NDArray[Any]] | None
    failure: TensorFlowError | None = None

    @property
    def has_no_number(self) -> bool:
        """Whether an answer has floating-point elements and none of them is a number.

        An image that is too small for a network ends as the average of nothing. To agree on that proves little.
        """
        arrays = [] if self.answer is None else self.answer.values()
        return any(array.dtype.kind in "fc" and array.size and not np.isfinite(array).any() for array in arrays)

    @property
    def says_something(self) -> bool:
        """Whether there is anything in an answer, and a number in each floating-point one that is not empty."""
        return self.answer is not None and any(one.size for one in self.answer.values()) and not self.has_no_number


@dataclass(frozen=True, slots=True)
class Recording:
    """All calls, the signatures whose answers are random, and those that no input suited.

    `computations` are digests of what the signatures compute, where that is known: equal ones compute the same.
    `left_out` counts calls that the source answered with what happened to be in its memory.
    """

    calls: tuple[RecordedCall, ...]
    random: frozenset[str]
    unproven: tuple[str, ...]
    computations: Mapping[str, str] = field(default_factory=dict)
    left_out: int = 0


def compare(
    engine: Engine, recording: Recording, tolerances: Mapping[str, float] = TOLERANCES, *, refusals: bool = False
) -> dict[str, Any]:
    """Repeat the calls and return the record for the manifest. Raises `OutputMismatchError` at the first difference.

    With `refusals`, what the source refuses must be refused.
    """
    outputs: dict[str, dict[str, Any]] = {}
    counts: dict[str, int] = {}
    for call in recording.calls:
        name = call.request.signature
        answer = repeat(engine, call, refusals=refusals)
        if call.answer is None or answer is None:
            continue
        if any(not call.answer[key].size for key in undeclared(engine.signatures[name], call.answer)):
            continue
        counts[name] = counts.get(name, 0) + 1
        for key, expected in call.answer.items():
            where = f"{name}:{key}"
            entry = outputs.setdefault(where, {"dtype": str(expected.dtype), "max_abs": 0.0, "max_rel": 0.0})
            if name in recording.random:
                _check_kind(where, expected, answer[key])
                continue
            absolute, relative = check_output(where, expected, answer[key], tolerances)
            entry["max_abs"], entry["max_rel"] = max(entry["max_abs"], absolute), max(entry["max_rel"], relative)
    by_dtype: dict[str, dict[str, float]] = {}
    for entry in outputs.values():
        worst = by_dtype.setdefault(entry["dtype"], {"max_abs": 0.0, "max_rel": 0.0})
        for measure in worst:
            worst[measure] = max(worst[measure], entry[measure])
    record = {"calls": counts, "outputs": outputs, "dtypes": by_dtype, "random": sorted(recording.random)}
    return {**record, "unproven": list(recording.unproven)} if recording.unproven else record


def undeclared(signature: Signature, answer: Mapping[str, NDArray[Any]]) -> list[str]:
    """Return the outputs whose shapes the signature itself excludes.

    A convolution of TensorFlow's to nothing, or of a batch without rows, may answer in the shape of its input.
    """

    def fits(key: str, array: NDArray[Any]) -> bool:
        declared = signature.outputs[key].spec.shape
        return declared is None or (
            len(declared) == array.ndim and all(d in (None, s) for d, s in zip(declared, array.shape, strict=True))
        )

    return [key for key, array in answer.items() if not fits(key, array)]


def repeat(engine: Engine, call: RecordedCall, *, refusals: bool) -> dict[str, NDArray[Any]] | None:
    """Return what the converted model answers, or `None` where it refuses what its source does not answer, or only
    with what is no number."""
    name, signature = call.request.signature, engine.signatures[call.request.signature]
    arrays = [call.request.inputs[key] for key in signature.inputs]
    try:
        answer = dict(zip(signature.outputs, engine.run(name, arrays), strict=True))
    except GlowplugError as error:
        if call.answer is None or call.has_no_number:
            return None
        raise OutputMismatchError(
            "the converted model refuses a call that its source answers", seen=f"{name}: {error}"
        ) from error
    says_something = all(array.size for array in arrays) or any(array.size for array in answer.values())
    if refusals and call.answer is None and says_something:
        shown = ", ".join(f"{key} {array.dtype}{list(array.shape)}" for key, array in call.request.inputs.items())
        raise OutputMismatchError("the converted model answers a call that its source refuses", seen=f"{name}: {shown}")
    return answer


def check_output(
    where: str,
    expected: NDArray[Any],
    seen: NDArray[Any],
    tolerances: Mapping[str, float],
    rounded: Sequence[NDArray[Any]] = (),
) -> tuple[float, float]:
    """Return how far apart two answers are, at most and in relation to the largest number; raise where that is too far.

    `rounded` are answers that the source gives to almost the same inputs: as far apart as these is near enough.
    """
    _check_kind(where, expected, seen)
    tolerance = tolerances.get(str(expected.dtype))
    if tolerance is None:  # no floating-point numbers
        different = int(np.sum(expected != seen))
        if different > max((int(np.sum(expected != one)) for one in rounded if one.shape == expected.shape), default=0):
            raise _differs(where, f"{different} of {expected.size} elements of {expected.dtype} differ")
        return 0.0, 0.0
    absolute, relative = distance(expected, seen)
    allowed = max((distance(expected, one)[1] for one in rounded if one.shape == expected.shape), default=0.0)
    if relative <= max(tolerance, allowed):
        return absolute, relative
    if relative == np.inf:
        raise _differs(where, "NaN or infinity in other places")
    raise _differs(where, f"relative difference {relative:.2g}, allowed for {expected.dtype} is {tolerance:.2g}")


def _check_kind(where: str, expected: NDArray[Any], seen: NDArray[Any]) -> None:
    if expected.shape != seen.shape or expected.dtype != seen.dtype:
        raise _differs(where, f"{seen.dtype}{list(seen.shape)} instead of {expected.dtype}{list(expected.shape)}")


def _differs(where: str, seen: str) -> OutputMismatchError:
    return OutputMismatchError("the converted model and its source give different answers", seen=f"{where}: {seen}")
