"""Runs TensorFlow's own converter on a SavedModel. Runs in a process of its own: it leaks, can hang, and can die."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from glowplug.convert.calls.edges import Edge, record_edges
from glowplug.convert.job import import_tensorflow
from glowplug.core.errors import UnsupportedModelError

from . import trial

_OPERATIONS = (
    re.compile(r"(?:TF Select|Custom) ops: ([^\n]+)"),
    re.compile(r"error: 'tfl?\.([\w.]+)' op"),
    re.compile(r"Op type not registered '([^']+)'"),
    re.compile(r'fused\["(\w+):'),
)
_DETAILS = re.compile(r"tf\.(\w+)\(tensor<(?:[^>]*x)?(\w+)>")  # an operation that is lacking, and its element type
_CALLS = ("PartitionedCall", "StatefulPartitionedCall")
_REMEDY = "pack it with --engine native, which takes all of TensorFlow's operations"


def convert(argument: dict[str, Any]) -> None:
    """Write the SavedModel at `saved_model` as a LiteRT model to `target`."""
    import_tensorflow()
    import tensorflow as tf
    from tensorflow.lite.python.lite import TFLiteSavedModelConverterV2

    # What `tf.lite.TFLiteConverter.from_saved_model` makes, which drops all signatures but one of a Keras export.
    converter = TFLiteSavedModelConverterV2(argument["saved_model"], {"serve"}, argument["signatures"])
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
    if argument["quantize"]:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if argument["quantize"] == "float16":
        converter.target_spec.supported_types = [tf.float16]
    if argument["quantize"] == "int8":
        converter.representative_dataset = lambda: _examples(argument)
    try:
        data = converter.convert()
    except Exception as error:  # the converter raises errors of every kind
        raise _refusal(str(error)) from error
    Path(argument["target"]).write_bytes(data)
    if argument["edges"]:
        Path(argument["edges"]).write_bytes(pickle.dumps(_edges(argument)))


def _edges(argument: dict[str, Any]) -> list[Edge]:
    """Ask the source for its answers at the edges: here, since TensorFlow, too, may die of them."""
    from glowplug.convert.source.saved_model import SavedModel

    with SavedModel(Path(argument["saved_model"])) as source:
        inputs = {name: one.inputs for name, one in source.signatures.items()}
        return record_edges(trial.load(Path(argument["recording"])), inputs, source.call)


def _examples(argument: dict[str, Any]) -> Iterator[Any]:
    """Yield the calibration calls as the converter takes them."""
    from glowplug.convert.calls.warmup_files import read_requests
    from glowplug.convert.source.saved_model import SavedModel

    with SavedModel(Path(argument["saved_model"])) as source:
        requests = read_requests(Path(argument["calibration"]), source.signatures)
    for request in requests:
        yield request.signature, dict(request.inputs)


def _refusal(text: str) -> UnsupportedModelError:
    typed = {name: kind for name, kind in _DETAILS.findall(text) if kind not in ("f32", "resource")}
    for pattern in _OPERATIONS:
        names = dict.fromkeys(name.strip() for match in pattern.findall(text) for name in match.split(","))
        found = [name for name in names if name not in _CALLS]
        if found:
            shown = [f"{name} of {typed[name]}" if name in typed else name for name in found[:5]]
            return UnsupportedModelError(
                "LiteRT lacks an operation of this model", seen=", ".join(shown), remedy=_REMEDY
            )
    lines = [line for line in text.splitlines() if line.strip()] or ["no reason was given"]
    return UnsupportedModelError("LiteRT cannot take this model", seen=lines[0][:300], remedy=_REMEDY)
