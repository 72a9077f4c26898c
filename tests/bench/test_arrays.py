"""Inputs and answers travel between environments as raw bytes."""

from __future__ import annotations

import json

import numpy as np
import pytest

from glowplug.bench.contestants.start import read_arrays, write_arrays


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.float32).reshape(2, 3),
        np.array(7, np.int64),
        np.zeros((0, 4), np.float16),
        np.array([True, False]),
        np.array([[1 + 2j]], np.complex64),
        np.array([[b"", b"\0\xff\0"], ["käse".encode(), b"x"]], object),
    ],
)
def test_arrays_come_back_as_they_were(tmp_path, array):
    described = json.loads(json.dumps(write_arrays(str(tmp_path), {"x": array})))
    back = read_arrays(described)["x"]
    assert back.dtype == array.dtype
    assert back.shape == array.shape
    assert np.array_equal(back, array)


def test_texts_become_bytes(tmp_path):
    back = read_arrays(write_arrays(str(tmp_path), {"x": np.array(["a", "ä"])}))["x"]
    assert list(back) == [b"a", "ä".encode()]
