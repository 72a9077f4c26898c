from __future__ import annotations

import ml_dtypes
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from glowplug.serve.workers import packets
from glowplug.serve.workers.spec import WorkerSpec

ARRAYS = {
    "scalar": np.float32(1.5).reshape(()),
    "empty": np.zeros((0, 3), np.int64),
    "strings": np.array([[b"", "text"], [b"\xff", b"x" * 300]], object),
    "no strings": np.zeros((0,), object),
    "bool": np.array([True, False]),
    "bfloat16": np.arange(3).astype(ml_dtypes.bfloat16),
    "turned": np.arange(6, dtype=np.float64).reshape(2, 3).T,
}


def collect(data: bytes, size: int):
    seen = []
    splitter = packets.Splitter(lambda kind, number, head, payload: seen.append((kind, number, head, payload)))
    for start in range(0, len(data), size):
        splitter.feed(data[start : start + size])
    return seen


@given(st.integers(1, 400))
def test_frames_arrive_however_the_stream_is_cut(size):
    whole = b"".join(packets.pack(packets.CALL, 7, ["name", ["y"]], ARRAYS)) + b"".join(
        packets.pack(packets.READY, 0, {"a": 1})
    )
    first, second = collect(whole, size)
    document, arrays = packets.unpack(first[2], first[3])
    assert (first[:2], document) == ((packets.CALL, 7), ["name", ["y"]])
    for name, array in ARRAYS.items():
        assert arrays[name].shape == array.shape
        assert arrays[name].dtype == array.dtype
    assert arrays["strings"].tolist() == [[b"", b"text"], [b"\xff", b"x" * 300]]
    np.testing.assert_array_equal(arrays["turned"], ARRAYS["turned"])
    assert packets.unpack(second[2], second[3]) == ({"a": 1}, {})


@given(npst.arrays(npst.floating_dtypes(endianness="="), npst.array_shapes(min_dims=0, min_side=0)))
def test_any_array(array):
    ((_, _, head, payload),) = collect(b"".join(packets.pack(packets.ANSWER, 1, 5, {"y": array})), 1 << 20)
    assert packets.unpack(head, payload)[1]["y"].tobytes() == array.tobytes()


def test_a_worker_specification_survives_json():
    import json

    spec = WorkerSpec("/x", "bundle", op_libraries=("tensorflow_text",), largest_batch=4)
    assert WorkerSpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec
