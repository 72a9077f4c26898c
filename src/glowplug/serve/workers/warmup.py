"""The calls that make a model warm: packed with it, recorded, in TensorFlow Serving's file, or made up.

Run by a worker before it says that it is ready. A call that the model refuses is reported. It keeps the model from
serving where it is known to be a good one, or where no other input could have done better (`why_dead`): a recorded
request may be a bad one, and made-up values may not suit a model.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glowplug.core.clock import now_ns
from glowplug.core.dtypes import numpy_dtype
from glowplug.core.errors import GlowplugError, RequestError
from glowplug.core.manifest import Signature
from glowplug.loader.engines.engine import Engine
from glowplug.serve.wire import tensor_proto
from glowplug.serve.wire.calls import DEFAULT_SIGNATURE, check_inputs
from glowplug.serve.wire.examples import serialized
from glowplug.serve.wire.limits import Limits
from glowplug.serve.wire.messages import message, serving

from .spec import WarmCall

SERVING_FILE = Path("assets.extra") / "tf_serving_warmup_requests"
MAX_CALLS = 1000  # TensorFlow Serving's limit for its warm-up file
_FIRST_RUNS, _RUNS = 2, 1  # a second run of the first call shows what requests will meet
# Packed calls were answered when the bundle was made; TensorFlow Serving, too, loads no model that fails its file.
_KNOWN_GOOD = ("packed", "serving file")
# What no input can cure: a variable without a value, a file or a kernel that is not there.
_INCURABLE = ("FAILED_PRECONDITION", "NOT_FOUND", "UNIMPLEMENTED")
_RECORD_HEADER, _RECORD_FOOTER = struct.Struct("<QI"), 4


@dataclass(frozen=True, slots=True)
class Planned:
    """A warm-up call that is still to be run."""

    signature: str
    source: str
    inputs: Mapping[str, NDArray[Any]]


def run(engine: Engine, planned: Iterator[Planned], *, brief: bool = False) -> Iterator[WarmCall]:
    """Run the calls one by one and yield what each took; with `brief`, none is run twice."""
    for place, call in enumerate(planned):
        rows = max((len(array) for array in call.inputs.values() if array.ndim), default=0)
        durations: list[int] = []
        error = code = ""
        try:
            signature = engine.signatures[call.signature]
            check_inputs(call.signature, signature, call.inputs)
            arrays = [call.inputs[name] for name in signature.inputs]
            for _ in range(_RUNS if place or brief else _FIRST_RUNS):
                began = now_ns()
                engine.run(call.signature, arrays)
                durations.append(now_ns() - began)
        except KeyError:
            error = "the model has no such signature"
        except GlowplugError as failure:
            error, code = str(failure).splitlines()[0][:300], getattr(failure, "code", "")
        first, last = (durations[0], durations[-1]) if durations else (0, 0)
        yield WarmCall(call.signature, call.source, rows, len(durations), first, last, error, code)


def why_dead(calls: Sequence[WarmCall]) -> str:
    """Say why a model cannot serve, from what became of its warm-up calls; an empty text where it can."""
    for call in calls:
        if call.error and call.source in _KNOWN_GOOD:
            return f"the {call.source} warm-up call of {call.signature!r} failed: {call.error}"
    works = {call.signature for call in calls if call.runs}
    judged = [call for call in calls if call.signature == DEFAULT_SIGNATURE] or list(calls)
    if not any(call.signature in works for call in judged):
        for call in judged:
            if call.code in _INCURABLE:
                return f"{call.signature!r} failed: {call.error}"
    return ""


def distinct(signatures: Mapping[str, Signature]) -> dict[str, Signature]:
    """Leave out signatures that take the same inputs and weights as another and give the same kinds of outputs.

    Keras exports each model as `serve` and as `serving_default`. A call of the one brings in the weights for both; the
    first call of the other is slower by what its graph takes to set up.
    """
    found: dict[Any, str] = {}
    for name in sorted(signatures, key=lambda name: name != DEFAULT_SIGNATURE):
        one = signatures[name]
        sides = [
            tuple((key, port.spec.dtype, port.spec.shape) for key, port in s.items()) for s in (one.inputs, one.outputs)
        ]
        found.setdefault((*sides, one.weights, one.targets) if one.weights else name, name)
    return {name: signatures[name] for name in found.values()}


def synthesized(signatures: Mapping[str, Signature], largest_batch: int) -> Iterator[Planned]:
    """Make a call of every signature: at batch one, and at the largest batch where there is one."""
    for name, signature in signatures.items():
        for rows in sorted({1, largest_batch or 1}):
            yield Planned(name, "synthesised", {key: _zeros(port.spec, rows) for key, port in signature.inputs.items()})


def _zeros(spec: Any, rows: int) -> NDArray[Any]:
    shape = spec.shape if spec.shape is not None else (None,)
    sizes = [(rows if place == 0 else 1) if size is None else size for place, size in enumerate(shape)]
    if spec.dtype == "string":
        array = np.empty(sizes, object)
        array.fill(message("tensorflow.Example")().SerializeToString())
        return array
    return np.zeros(sizes, numpy_dtype(spec.dtype))


def from_serving_file(path: Path, limits: Limits, source: str = "serving file") -> Iterator[Planned]:
    """Read a `tf_serving_warmup_requests` file: length-delimited records of `PredictionLog`."""
    log_type = serving("PredictionLog")
    for record in _records(path):
        log = log_type.FromString(record)
        kind = log.WhichOneof("log_type")
        request: Any = getattr(log, kind).request if kind is not None else None
        if kind == "predict_log":
            inputs = {key: tensor_proto.decode(value, key, limits) for key, value in request.inputs.items()}
            yield Planned(request.model_spec.signature_name or DEFAULT_SIGNATURE, source, inputs)
        elif kind in ("classify_log", "regress_log"):
            name = request.model_spec.signature_name or DEFAULT_SIGNATURE
            yield Planned(name, source, {"inputs": serialized(request.input)})
        elif kind == "multi_inference_log":
            for task in request.tasks:
                name = task.model_spec.signature_name or DEFAULT_SIGNATURE
                yield Planned(name, source, {"inputs": serialized(request.input)})


def _records(path: Path) -> Iterator[bytes]:
    count = 0
    with path.open("rb") as stream:
        while (head := stream.read(_RECORD_HEADER.size)) and count < MAX_CALLS:
            if len(head) < _RECORD_HEADER.size:
                raise RequestError("a warm-up file is cut off", seen=path.name)
            size = _RECORD_HEADER.unpack(head)[0]
            if size > path.stat().st_size:
                raise RequestError("a warm-up file is damaged", seen=path.name)
            record = stream.read(size)
            if len(record) < size or len(stream.read(_RECORD_FOOTER)) < _RECORD_FOOTER:
                raise RequestError("a warm-up file is cut off", seen=path.name)
            count += 1
            yield record
