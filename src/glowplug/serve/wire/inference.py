"""Classify and regress: which signatures can, and what their outputs mean as messages and as JSON.

A SavedModel says so by method name; exporters since TensorFlow 2 always write `predict`, so the names of inputs and
outputs decide, as those of TensorFlow Serving's own signature constants.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from glowplug.core.errors import RequestError
from glowplug.core.manifest import Signature

from .calls import Arrays
from .json_tensor import dumps, to_json
from .messages import serving

Method = Literal["classify", "regress"]

METHODS: dict[str, Method] = {"tensorflow/serving/classify": "classify", "tensorflow/serving/regress": "regress"}
_INPUT, _CLASSES, _SCORES, _OUTPUTS = "inputs", "classes", "scores", "outputs"


def method_name(signature: Signature) -> str:
    """Return what the model says that a signature does, or, where it says nothing, what it can do."""
    if signature.method:
        return signature.method
    for method in ("classify", "regress"):
        if _problem(method, signature) is None:
            return f"tensorflow/serving/{method}"
    return "tensorflow/serving/predict"


def check_signature(method: str, name: str, signature: Signature) -> None:
    """Refuse a signature that cannot classify or regress."""
    problem = _problem(method, signature)
    if problem is not None:
        raise RequestError(f"signature {name!r} cannot {method}", seen=problem, remedy="use predict")


def _problem(method: str, signature: Signature) -> str | None:
    if list(signature.inputs) != [_INPUT] or signature.inputs[_INPUT].spec.dtype != "string":
        return f"it takes {', '.join(f'{key}: {port.spec}' for key, port in signature.inputs.items())}"
    allowed = {_CLASSES, _SCORES} if method == "classify" else {_OUTPUTS}
    if not signature.outputs or not set(signature.outputs) <= allowed:
        return f"its outputs are {', '.join(signature.outputs)}"
    return None


def classification(outputs: Arrays, examples: int) -> Any:
    """Return the `ClassificationResult` of a model's outputs."""
    classes, scores = outputs.get(_CLASSES), outputs.get(_SCORES)
    for name, array in ((_CLASSES, classes), (_SCORES, scores)):
        if array is not None and (array.ndim != 2 or array.shape[0] != examples):
            raise _misshapen(name, array, f"[{examples}, classes]")
    result = serving("ClassificationResult")()
    for row in range(examples):
        found = result.classifications.add()
        for column in range((classes if classes is not None else scores).shape[1]):  # type: ignore[union-attr]
            label = "" if classes is None else _label(classes[row, column])
            found.classes.add(label=label, score=0.0 if scores is None else float(scores[row, column]))
    return result


def regression(outputs: Arrays, examples: int) -> Any:
    """Return the `RegressionResult` of a model's outputs."""
    values = outputs[_OUTPUTS]
    if values.shape not in ((examples,), (examples, 1)):
        raise _misshapen(_OUTPUTS, values, f"[{examples}] or [{examples}, 1]")
    result = serving("RegressionResult")()
    for value in values.reshape(-1).tolist():
        result.regressions.add(value=value)
    return result


def classification_json(result: Any) -> bytes:
    """Return the REST answer of a classification: for each example the pairs of label and score."""
    rows = [[[found.label, np.float32(found.score)] for found in row.classes] for row in result.classifications]
    return dumps({"results": _shortest(rows)})


def regression_json(result: Any) -> bytes:
    """Return the REST answer of a regression: a number for each example."""
    return dumps({"results": to_json(np.array([found.value for found in result.regressions], np.float32), "")})


def _shortest(value: Any) -> Any:
    if isinstance(value, list):
        return [_shortest(item) for item in value]
    return value if isinstance(value, str) else float(str(value))


def _label(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _misshapen(name: str, array: NDArray[Any], wanted: str) -> RequestError:
    return RequestError(
        f"output {name!r} of the model must have the shape {wanted}",
        seen=list(array.shape),
        code="FAILED_PRECONDITION",
    )
