"""Which `Predict` messages are read where others wait, and what stands in for very many strings."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glowplug.core.errors import RequestError
from glowplug.serve.wire import predict_message, v2_message
from glowplug.serve.wire.limits import Limits
from glowplug.serve.wire.messages import message, serving
from glowplug.serve.wire.tensor_proto import encode
from glowplug.serve.workers import packets
from glowplug.serve.workers.packed_strings import PackedStrings

MANY = 1 << 17


def request(array, dtype):
    made = serving("PredictRequest")()
    made.model_spec.name = "m"
    made.inputs["x"].CopyFrom(encode(array, dtype))
    return made


@pytest.mark.parametrize(
    ("made", "quick"),
    [
        (request(np.zeros(4, np.int64), "int64"), True),
        (request(np.zeros(MANY, np.float32), "float32"), True),
        (request(np.zeros(MANY, np.complex128), "complex128"), True),
        (request(np.zeros(MANY, np.int64), "int64"), False),
        (request(np.zeros(MANY, np.bool_), "bool"), False),
        (request(np.array([b""] * MANY, object), "string"), False),
        (request(np.array([b"x" * MANY], object), "string"), False),
    ],
    ids=["few integers", "floats", "complex", "integers", "bools", "strings", "one long string"],
)
def test_what_is_quick(made, quick):
    assert predict_message.is_quick(made.SerializeToString()) is quick


def test_raw_bytes_are_quick_unless_they_are_strings():
    numbers = serving("PredictRequest")()
    numbers.inputs["x"].dtype, numbers.inputs["x"].tensor_content = 9, bytes(8 * MANY)
    assert predict_message.is_quick(numbers.SerializeToString())
    numbers.inputs["x"].dtype = 7
    assert not predict_message.is_quick(numbers.SerializeToString())


def test_very_many_fields_anywhere_are_not_quick():
    many = serving("PredictRequest")()
    many.output_filter.extend(["y"] * MANY)
    assert not predict_message.is_quick(many.SerializeToString())
    many = serving("PredictRequest")()
    for number in range(MANY >> 4):
        many.inputs[str(number)].dtype = 1
    assert not predict_message.is_quick(many.SerializeToString())


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_any_bytes_are_looked_at(head, tail):
    assert predict_message.is_quick(head + bytes(1 << 16) + tail) in (True, False)


def test_one_string_that_stands_for_very_many():
    small = request(np.array([b"x"], object), "string")
    assert not predict_message.unfolds(small)
    small.inputs["x"].tensor_shape.dim[0].size = 100_000
    assert predict_message.unfolds(small)


def test_one_number_that_fills_a_shape_is_kept_as_one():
    small = request(np.array([7], np.float32), "float32")
    small.inputs["x"].tensor_shape.dim[0].size = 1 << 20
    small.inputs["x"].tensor_shape.dim.add(size=4)
    found = predict_message.read(small, Limits()).inputs["x"]
    assert (found.shape, found.strides, found[-1, -1]) == ((1 << 20, 4), (0, 0), 7)


def test_several_numbers_fill_a_few_times_their_size():
    small = request(np.arange(2), "int64")
    small.inputs["x"].tensor_shape.dim[0].size = 1 << 14
    assert predict_message.read(small, Limits()).inputs["x"].sum() == (1 << 14) - 1
    small.inputs["x"].tensor_shape.dim[0].size = 1 << 15
    with pytest.raises(RequestError, match="too large to be filled up"):
        predict_message.read(small, Limits())


@pytest.mark.parametrize(("dtype", "size"), [("string", 1 << 15), ("float32", 1 << 19), ("int64", 1 << 18)])
def test_a_few_bytes_are_not_filled_up_without_bound(dtype, size):
    limits = Limits(request_bytes=1 << 20)
    small = request(np.array([b"x" if dtype == "string" else 1], object if dtype == "string" else dtype), dtype)
    small.inputs["x"].tensor_shape.dim[0].size = 1 << 14
    assert predict_message.read(small, limits).inputs["x"].shape == (1 << 14,)
    small.inputs["x"].tensor_shape.dim[0].size = size
    with pytest.raises(RequestError, match="too large to be filled up"):
        predict_message.read(small, limits)


def test_many_strings_pass_as_they_are():
    strings = np.array([b"%d" % n for n in range(3000)], object).reshape(1000, 3)
    first = b"".join(packets.pack(packets.ANSWER, 0, None, {"x": strings, "few": strings[:2]}))
    passed = packets.read(memoryview(first), lazily=True)
    assert isinstance(passed["x"], PackedStrings)
    assert isinstance(passed["few"], np.ndarray)
    again = b"".join(packets.pack(packets.ANSWER, 0, None, passed))
    assert again == first
    found = packets.read(memoryview(again))["x"]
    assert isinstance(found, np.ndarray)
    assert found.tolist() == strings.tolist()
    lazy = passed["x"]
    assert (lazy.shape, lazy.ndim, lazy.size, len(lazy), lazy.dtype) == ((1000, 3), 2, 3000, 1000, np.dtype(object))
    assert lazy[999].tolist() == strings[999].tolist()
    assert np.concatenate([lazy, lazy]).shape == (2000, 3)
    assert list(lazy.flat) == list(strings.flat)


@pytest.mark.parametrize(
    ("contents", "count", "quick"),
    [
        ("fp32_contents", MANY, True),
        ("int64_contents", MANY, False),
        ("bytes_contents", MANY, False),
        ("int64_contents", 9, True),
    ],
)
def test_which_messages_of_open_inference_are_parsed_here(contents, count, quick):
    made = message("inference.ModelInferRequest")(model_name="m")
    tensor = made.inputs.add(name="x", datatype="X", shape=[count])
    getattr(tensor.contents, contents).extend([b""] * count if contents == "bytes_contents" else [1] * count)
    assert v2_message.is_quickly_parsed(made.SerializeToString()) is quick


def test_raw_tensors_of_open_inference_are_parsed_here():
    made = message("inference.ModelInferRequest")(model_name="m", raw_input_contents=[bytes(8 * MANY)])
    made.inputs.add(name="x", datatype="FP32", shape=[2 * MANY])
    assert v2_message.is_quickly_parsed(made.SerializeToString())
