from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glowplug.core.errors import RequestError
from glowplug.core.manifest import Port, Signature, TensorSpec
from glowplug.serve.wire.json_predict import read_body, read_inputs, write_answer
from glowplug.serve.wire.limits import Limits

LIMITS = Limits(tensor_bytes=1 << 20)


def signature(**specs: str) -> Signature:
    return Signature({name: Port(TensorSpec(dtype, None), f"{name}:0") for name, dtype in specs.items()}, {})


def read(body, **specs: str):
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    parsed = read_body(text)
    return read_inputs(parsed, signature(**specs), LIMITS)


def test_the_forms_of_the_documentation():
    x = [[1.0, 2.0], [3.0, 4.0]]
    assert read({"instances": x}, x="float32")["x"].tolist() == x
    assert read({"inputs": x}, x="float32")["x"].tolist() == x
    assert read({"inputs": {"x": x}}, x="float32")["x"].tolist() == x
    rows = {"instances": [{"a": "foo", "b": [1, 2]}, {"a": "bar", "b": [3, 4]}]}
    both = read(rows, a="string", b="int64")
    assert both["a"].tolist() == [b"foo", b"bar"]
    assert both["b"].tolist() == [[1, 2], [3, 4]]
    assert both["b"].dtype == np.int64
    columns = read({"inputs": {"a": ["foo", "bar"], "b": [[1, 2], [3, 4]]}}, a="string", b="int64")
    assert {name: array.tolist() for name, array in columns.items()} == {n: a.tolist() for n, a in both.items()}


def test_scalars_and_bytes():
    assert read({"inputs": 3}, x="int32")["x"].shape == ()
    assert read({"instances": [{"b64": "aGk="}, {"b64": "aGk"}, "x"]}, x="string")["x"].tolist() == [b"hi", b"hi", b"x"]
    assert read({"inputs": {"b64": "aGk="}}, x="string")["x"].item() == b"hi"
    assert read({"instances": [{"x": {"b64": "aGk="}}]}, x="string")["x"].tolist() == [b"hi"]


def test_numbers_that_are_not_finite():
    array = read(b'{"instances": [NaN, Infinity, -Infinity, 1]}', x="float32")["x"]
    assert math.isnan(array[0])
    assert array[1:].tolist() == [math.inf, -math.inf, 1.0]
    body = write_answer("row", {"y": array})
    assert body == b'{"predictions": [NaN, Infinity, -Infinity, 1.0]}'


def test_what_a_type_cannot_hold_is_rounded():
    array = read({"instances": [16777217, 1435774380, 1e300, -1e300, 1e-300, 1 << 70]}, x="float32")["x"]
    assert array.tolist() == [16777216.0, 1435774336.0, math.inf, -math.inf, 0.0, float(1 << 70)]
    assert read({"instances": [1e6]}, x="float16")["x"].tolist() == [math.inf]
    assert read(b'{"instances": [NaN, 1180591620717411303424]}', x="float64")["x"][1] == float(1 << 70)


@pytest.mark.parametrize("body", [b'{"inputs": 1} behind', b'\xef\xbb\xbf{"inputs": 1}', b' \r\n\t{"inputs": 1}\0'])
def test_what_stands_around_the_document_is_no_matter(body):
    assert read(body, x="int32")["x"] == 1


def test_answers():
    y = np.array([[0.2, 1.0]], np.float32)
    assert write_answer("row", {"y": y}) == b'{"predictions":[[0.2,1.0]]}'
    assert write_answer("columnar", {"y": y}) == b'{"outputs":[[0.2,1.0]]}'
    both = {"a_bytes": np.array([b"\xff", b"x"], object), "n": np.array([1, 2])}
    assert json.loads(write_answer("row", both)) == {
        "predictions": [{"a_bytes": {"b64": "/w=="}, "n": 1}, {"a_bytes": {"b64": "eA=="}, "n": 2}]
    }
    assert json.loads(write_answer("columnar", both))["outputs"]["n"] == [1, 2]
    assert json.loads(write_answer("columnar", {"y": np.float32(0.5).reshape(())})) == {"outputs": 0.5}
    half = np.array([1.5], np.float16)
    assert json.loads(write_answer("row", {"y": half, "n": np.array([True])}))["predictions"] == [{"y": 1.5, "n": True}]
    nan = {"a": np.array([np.nan, 0.1], np.float32), "b": np.array([0.1, 0.2], np.float32)}
    assert write_answer("row", nan) == b'{"predictions": [{"a": NaN, "b": 0.1}, {"a": 0.1, "b": 0.2}]}'
    text = np.array(["é".encode(), b"\xff"], object)
    assert json.loads(write_answer("row", {"y": text}))["predictions"] == ["é", {"b64": "/w=="}]


def test_row_answers_need_a_common_batch():
    with pytest.raises(RequestError, match="has no shape information"):
        write_answer("row", {"y": np.float32(1).reshape(())})
    with pytest.raises(RequestError, match="inconsistent batch size: 2 expecting: 1"):
        write_answer("row", {"a": np.zeros(1), "b": np.zeros(2)})
    with pytest.raises(RequestError, match="complex64"):
        write_answer("row", {"a": np.zeros(1, np.complex64)})


@pytest.mark.parametrize(
    ("body", "specs", "part"),
    [
        (b"", {"x": "float32"}, "document is empty"),
        (b"[1]", {"x": "float32"}, "is not object"),
        (b"{", {"x": "float32"}, "JSON Parse error"),
        (b"[" * 5000, {"x": "float32"}, "JSON Parse error"),
        ({}, {"x": "float32"}, "Missing 'inputs' or 'instances'"),
        ({"instances": [1], "inputs": [1]}, {"x": "float32"}, "only one of"),
        ({"instances": 1}, {"x": "float32"}, "to be an list"),
        ({"instances": []}, {"x": "float32"}, "No values in"),
        ({"instances": [1], "signature_name": 3}, {"x": "float32"}, "must be a string"),
        ({"instances": [1]}, {"x": "float32", "y": "float32"}, "plain list"),
        ({"instances": [{"x": 1}]}, {"x": "float32", "y": "float32"}, "keys must be equal to: x,y"),
        ({"instances": [{"x": 1}, 2]}, {"x": "float32"}, "Expecting object but got list at item 1"),
        ({"instances": [1, {"x": 2}]}, {"x": "float32"}, "Expecting value/list but got object at item 1"),
        ({"inputs": {"z": 1}}, {"x": "float32"}, "Missing named input: x"),
        ({"instances": [[1, 2], [3]]}, {"x": "float32"}, "'x' must be float32.*list of 1 where lists of 2"),
        ({"instances": [[1], 3]}, {"x": "float32"}, "'x' must be float32.*3 where lists of 1"),
        ({"instances": [1.5]}, {"x": "int32"}, "'x' must be int32.*a fraction 1.5"),
        ({"instances": [1 << 40]}, {"x": "int32"}, "out of range"),
        ({"instances": [-1]}, {"x": "uint8"}, "out of range"),
        ({"instances": [1 << 70]}, {"x": "int64"}, "must be int64"),
        ({"instances": ["a"]}, {"x": "float32"}, 'a string "a"'),
        ({"instances": [1, "a" * 100000]}, {"x": "float32"}, "a string"),
        ({"instances": [True]}, {"x": "float32"}, "a boolean true"),
        ({"instances": [[0.5] * 99 + [False]]}, {"x": "float16"}, "a boolean false"),
        ({"instances": [[0.5, "0.5"]]}, {"x": "float32"}, 'a string "0.5"'),
        ({"instances": [1]}, {"x": "bool"}, "'x' must be bool"),
        ({"instances": [None]}, {"x": "float32"}, "null"),
        ({"instances": [1]}, {"x": "string"}, "'x' must be string"),
        ({"instances": [{"b64": "$"}]}, {"x": "string"}, "unable to base64 decode"),
        ({"instances": [int("9" * 400)]}, {"x": "float64"}, "JSON Parse error"),
        (b'{"instances": [NaN, 1e999]}', {"x": "float64"}, "JSON Parse error"),
        (b'{"instances": [NaN, 99999999999999999999]}', {"x": "int64"}, "must be int64"),
        (b'{"instances": [1]', {"x": "float32"}, "JSON Parse error: Invalid value"),
        (b'{"instances": ["\xff"]}', {"x": "string"}, "JSON Parse error"),
        (b'{"instances": ["a"], "signature_name": "\\ud800"} behind', {"x": "string"}, "JSON Parse error"),
    ],
)
def test_refusals(body, specs, part):
    with pytest.raises(RequestError, match=part):
        read(body, **specs)


leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
values = st.recursive(leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner))


@given(values, st.sampled_from(["float32", "int8", "uint64", "bool", "string", "float16"]), st.booleans())
def test_any_value_is_read_or_refused(value, dtype, row):
    body = {"instances": [value]} if row else {"inputs": value}
    try:
        array = read(body, x=dtype)["x"]
    except RequestError:
        return
    assert write_answer("columnar", {"y": array})


@pytest.mark.parametrize(
    ("body", "part"),
    [
        (b'{"instances": [NaN, 1,]}', "column 23"),
        (b'{"instances": [Infinity 1]}', "column 25"),
        (b'{"a": NaN, "b": ' + b"[" * 100_000, "nested too deeply"),
        (b'{"instances": [1,]}', "column 18"),
    ],
)
def test_what_is_wrong_is_named_and_not_what_came_before_it(body, part):
    with pytest.raises(RequestError, match=part):
        read_body(body)
