from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from glowplug.core.errors import RequestError
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
