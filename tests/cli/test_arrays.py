"""Arrays in JSON and in numpy's files, there and back."""

from __future__ import annotations

import io
import json

import ml_dtypes
import numpy as np
import pytest

from glowplug.cli.arrays import encode_outputs, read_input, to_json
from glowplug.core.errors import UsageError
from glowplug.core.manifest import TensorSpec


def strings(*items):
    array = np.empty(len(items), object)
    array[:] = items
    return array


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.float32([[1.5, np.nan], [np.inf, -np.inf]]), [[1.5, "NaN"], ["Infinity", "-Infinity"]]),
        (np.int64(2**62) * np.ones((), np.int64), 2**62),
        (np.array([True, False]), [True, False]),
        (np.array([1 + 2j], np.complex64), [[1.0, 2.0]]),
        (np.array([1.5], ml_dtypes.bfloat16), [1.5]),
        (strings(b"a", b"\xff"), ["a", {"b64": "/w=="}]),
        (np.zeros((0, 3), np.float32), []),
    ],
)
def test_to_json(array, expected):
    assert to_json(array) == expected
    json.dumps(to_json(array), allow_nan=False)


def test_bfloat16_comes_back_from_an_npy_file(tmp_path):
    array = np.array([[1.5, -2]], ml_dtypes.bfloat16)
    (tmp_path / "a.npy").write_bytes(encode_outputs(".npy", {"a": array}))
    read = read_input(tmp_path / "a.npy", TensorSpec("bfloat16", (None, 2)))
    assert read.dtype == array.dtype
    assert np.array_equal(read, array)


def test_outputs_of_any_name_fit_into_an_npz_file():
    outputs = {"file": np.ones(2), "allow_pickle": np.zeros(1), "strings": strings(b"x", b"long")}
    loaded = np.load(io.BytesIO(encode_outputs(".npz", outputs)), allow_pickle=False)
    assert sorted(loaded) == sorted(outputs)
    assert loaded["strings"].tolist() == [b"x", b"long"]


def test_strings_that_numpy_would_cut_are_refused():
    with pytest.raises(UsageError, match=r"\.json"):
        encode_outputs(".npy", {"a": strings(b"x\0")})
