from __future__ import annotations

import contextlib

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from glowplug.core.errors import RequestError
from glowplug.serve.wire.limits import Limits
from glowplug.serve.wire.messages import message
from glowplug.serve.wire.tensor_proto import decode, encode

LIMITS = Limits()
TYPES = [
    "float32",
    "float64",
    "int32",
    "uint8",
    "int16",
    "int8",
    "int64",
    "bool",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "complex64",
    "complex128",
]


def proto(**fields):
    shape = fields.pop("shape", [])
    made = message("tensorflow.TensorProto")(**fields)
    for size in shape:
        made.tensor_shape.dim.add(size=size)
    return made


@pytest.mark.parametrize("dtype", TYPES)
@given(data=st.data())
def test_round_trip(dtype, data):
    array = data.draw(npst.arrays(np.dtype(dtype), npst.array_shapes(min_dims=0, max_dims=3, min_side=0)))
    back = decode(message("tensorflow.TensorProto").FromString(encode(array, dtype).SerializeToString()), "x", LIMITS)
    assert back.dtype == array.dtype
    assert back.shape == array.shape
    assert back.tobytes() == array.tobytes()


def test_bfloat16_and_float8_round_trip():
    for name in ("bfloat16", "float8_e5m2", "int4"):
        array = np.arange(4).astype(getattr(ml_dtypes, name)).reshape(2, 2)
        back = decode(encode(array, name), "x", LIMITS)
        assert back.dtype == array.dtype
        assert back.tobytes() == array.tobytes()


def test_strings_round_trip_with_any_bytes():
    array = np.array([[b"", b"\xff\x00"], ["text", b"x" * 300]], object)
    back = decode(encode(array, "string"), "x", LIMITS)
    assert back.tolist() == [[b"", b"\xff\x00"], [b"text", b"x" * 300]]


def test_packed_strings():
    back = decode(proto(dtype=7, shape=[2], tensor_content=b"\x02\x01abc"), "x", LIMITS)
    assert back.tolist() == [b"ab", b"c"]
    for wrong in (b"\x02\x01ab", b"\x02", b"\xff\xff\xff\xff\xff\x01"):
        with pytest.raises(RequestError, match="does not hold 2 strings"):
            decode(proto(dtype=7, shape=[2], tensor_content=wrong), "x", LIMITS)


def test_a_single_value_fills_the_shape_and_none_means_zeros():
    assert decode(proto(dtype=1, shape=[2, 2], float_val=[1.5]), "x", LIMITS).tolist() == [[1.5, 1.5], [1.5, 1.5]]
    assert decode(proto(dtype=3, shape=[3], int_val=[1, 2]), "x", LIMITS).tolist() == [1, 2, 2]
    assert decode(proto(dtype=9, shape=[2]), "x", LIMITS).tolist() == [0, 0]
    assert decode(proto(dtype=7, shape=[2]), "x", LIMITS).tolist() == [b"", b""]
    assert decode(proto(dtype=7, shape=[3], string_val=[b"a", b"b\0"]), "x", LIMITS).tolist() == [b"a", b"b\0", b"b\0"]
    assert decode(proto(dtype=7, shape=[1], string_val=[b"a", b"b"]), "x", LIMITS).tolist() == [b"a"]


def test_tensor_content_must_fit_the_shape():
    data = np.arange(3, dtype=np.float32).tobytes()
    assert decode(proto(dtype=1, shape=[3], tensor_content=data), "x", LIMITS).tolist() == [0, 1, 2]
    with pytest.raises(RequestError, match=r"input 'x'.*12 bytes for float32\[4\]"):
        decode(proto(dtype=1, shape=[4], tensor_content=data), "x", LIMITS)


@pytest.mark.parametrize(("code", "name", "content"), [(10, "bool", b"\x07\x00"), (29, "int4", b"\xff\x91")])
def test_raw_bytes_with_needless_bits_become_proper_elements(code, name, content):
    array = decode(proto(dtype=code, shape=[2], tensor_content=content), "x", LIMITS)
    assert array.tolist() == np.frombuffer(content, array.dtype).tolist()
    assert array.tobytes() == decode(encode(array, name), "x", LIMITS).tobytes()


@pytest.mark.parametrize("code", [14, 19])
def test_halves_are_the_low_bits_of_their_numbers(code):
    array = decode(proto(dtype=code, shape=[3], half_val=[-1, 0x13C00, -(1 << 31)]), "x", LIMITS)
    assert array.view(np.uint16).tolist() == [0xFFFF, 0x3C00, 0]


@pytest.mark.parametrize(
    ("fields", "message_part"),
    [
        ({"dtype": 1, "shape": [1 << 40], "float_val": [1.0]}, "larger than this server takes"),
        ({"dtype": 7, "shape": [1 << 40]}, "larger than this server takes"),
        ({"dtype": 7, "shape": [1 << 25], "string_val": [b"a"]}, "larger than this server takes"),
        ({"dtype": 1, "shape": [1 << 62, 0]}, "larger than this server takes"),
        ({"dtype": 1, "shape": [-1]}, "negative dimension"),
        ({"dtype": 1, "shape": [1] * 40}, "too many dimensions"),
        ({"dtype": 20, "shape": []}, "does not take"),
        ({"dtype": 0, "shape": []}, "does not take"),
        ({"dtype": 8, "shape": [1], "scomplex_val": [1.0]}, "half a complex number"),
    ],
)
def test_hostile_tensors_are_refused_before_memory_is_taken(fields, message_part):
    with pytest.raises(RequestError, match=message_part):
        decode(proto(**fields), "x", LIMITS)


@given(st.binary(max_size=200))
def test_any_bytes_decode_or_are_refused(data):
    from google.protobuf.message import DecodeError

    try:
        made = message("tensorflow.TensorProto").FromString(data)
    except DecodeError:
        return
    with contextlib.suppress(RequestError):
        assert decode(made, "x", Limits(tensor_bytes=1 << 16)).nbytes <= 1 << 19
