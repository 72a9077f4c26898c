from __future__ import annotations

import json

import numpy as np
import pytest

from glowplug.core.errors import RequestError
from glowplug.core.manifest import Port, Signature, TensorSpec
from glowplug.serve.wire import inference
from glowplug.serve.wire.examples import read_json, serialized
from glowplug.serve.wire.messages import message


def parse(array):
    return [message("tensorflow.Example").FromString(item) for item in array]


def test_examples_and_context():
    body = {
        "signature_name": "s",
        "context": {"shared": [1, 2], "both": ["context"]},
        "examples": [{"x": 1.5, "both": [{"b64": "/w=="}]}, {"flag": [True]}],
    }
    name, made = read_json(json.dumps(body).encode())
    assert name == "s"
    first, second = parse(serialized(made))
    assert list(first.features.feature["x"].float_list.value) == [1.5]
    assert list(first.features.feature["both"].bytes_list.value) == [b"\xff"]
    assert list(first.features.feature["shared"].int64_list.value) == [1, 2]
    assert list(second.features.feature["both"].bytes_list.value) == [b"context"]
    assert list(second.features.feature["flag"].int64_list.value) == [1]


@pytest.mark.parametrize(
    ("body", "part"),
    [
        ({}, "'examples' is expected"),
        ({"examples": {}}, "list/array"),
        ({"examples": []}, "empty array"),
        ({"examples": [1]}, "must be JSON object"),
        ({"examples": [{"x": [1, 1.5]}]}, "expecting type: int64"),
        ({"examples": [{"x": [[1]]}]}, "x has element with unexpected JSON type: Array"),
        ({"examples": [{"x": None}]}, "x has element with unexpected JSON type: Null"),
        ({"examples": [{"x": {"y": 1}}]}, "x has element with unexpected JSON type: Object"),
        ({"examples": [{"x": 1 << 63}]}, "Only int64_t is supported"),
        ({"context": [1]}, "Example must be JSON object but got JSON Array"),
        ({"examples": [True]}, "Example must be JSON object but got JSON True"),
    ],
)
def test_refusals(body, part):
    with pytest.raises(RequestError, match=part):
        read_json(json.dumps(body).encode())


def test_what_a_float_cannot_hold_becomes_an_infinity():
    _, made = read_json(b'{"examples": [{"x": [1e300, -1e300, 1e-300, NaN]}]}')
    found = parse(serialized(made))[0].features.feature["x"].float_list.value
    assert list(found[:3]) == [np.inf, -np.inf, 0.0]
    assert np.isnan(found[3])


def test_an_empty_input_is_refused():
    with pytest.raises(RequestError, match="Input is empty"):
        serialized(message("tensorflow.serving.Input")())


def signature(outputs):
    text, number = TensorSpec("string", (None,)), TensorSpec("float32", (None, 1))
    return Signature({"inputs": Port(text, "a:0")}, {name: Port(number, "b:0") for name in outputs})


def test_what_a_signature_does_follows_from_its_names():
    assert inference.method_name(signature(["scores"])) == "tensorflow/serving/classify"
    assert inference.method_name(signature(["outputs"])) == "tensorflow/serving/regress"
    assert inference.method_name(signature(["y"])) == "tensorflow/serving/predict"
    with pytest.raises(RequestError, match=r"'s' cannot classify.*outputs are y"):
        inference.check_signature("classify", "s", signature(["y"]))


def test_answers():
    found = inference.classification(
        {"classes": np.array([[b"cat", b"dog"]], object), "scores": np.array([[0.2, np.nan]], np.float32)}, 1
    )
    assert inference.classification_json(found) == b'{"results": [[["cat", 0.2], ["dog", NaN]]]}'
    found = inference.regression({"outputs": np.array([[0.1], [2]], np.float32)}, 2)
    assert inference.regression_json(found) == b'{"results":[0.1,2.0]}'
    with pytest.raises(RequestError, match="'outputs' of the model must have the shape"):
        inference.regression({"outputs": np.zeros(3, np.float32)}, 2)
