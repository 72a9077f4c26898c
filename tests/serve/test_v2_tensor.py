from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from glowplug.core.errors import RequestError
from glowplug.serve.wire.limits import Limits
from glowplug.serve.wire.v2_json import read_arrays, read_document
from glowplug.serve.wire.v2_tensor import from_raw, to_raw


@pytest.mark.parametrize(
    ("data", "shape"),
    [(b"", (1,)), (b"\0\0\0", (1,)), (b"\2\0\0\0a", (1,)), (b"\xff\xff\xff\xff", (1,)), (b"\0\0\0\0", (0,))],
)
def test_what_is_no_list_of_strings(data, shape):
    with pytest.raises(RequestError, match=r"the bytes of input 'x' are not \d strings"):
        from_raw(data, "string", shape, "x")


def test_a_shape_takes_no_memory_before_its_strings_are_there():
    tracemalloc.start()
    try:
        with pytest.raises(RequestError, match="0 in 0 bytes"):
            from_raw(b"", "string", (10_000_000,), "x")
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_strings_there_and_back():
    array = np.array([[b"", b"\0\xff"], [b"abc", b"d" * 300]], object)
    np.testing.assert_array_equal(from_raw(to_raw(array), "string", (2, 2), "x"), array)
    assert from_raw(b"", "string", (0, 3), "x").shape == (0, 3)


def document_of(name: str, data: str) -> bytes:
    return f'{{"inputs":[{{"name":"{name}","datatype":"FP32","shape":[1],"data":[{data}]}}]}}'.encode()


@pytest.mark.parametrize("name", ["x", "real", r"\u0072", r"r\u006c"])
@pytest.mark.parametrize("word", ["true", "false", "null"])
def test_words_are_no_numbers_whatever_the_input_is_called(name, word):
    with pytest.raises(RequestError, match="is not of expected type"):
        read_arrays(read_document(document_of(name, word), Limits()), memoryview(b""), Limits())


def test_letters_of_a_name_are_not_taken_for_words():
    body = read_document(document_of("keras_tensor_l", "1.5"), Limits())
    assert not body.words
    assert read_arrays(body, memoryview(b""), Limits())["keras_tensor_l"].tolist() == [1.5]
