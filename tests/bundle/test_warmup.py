"""Warm-up files: what was written comes back, and what is wrong with one is one error."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from glowplug.bundle.reader import open_bundle
from glowplug.bundle.warmup import Request, decode, encode, read_requests
from glowplug.bundle.writer import BundleWriter
from glowplug.core import errors
from glowplug.core.dtypes import BY_NAME, numpy_dtype

from .samples import graph, node


@pytest.mark.parametrize("dtype", [name for name in BY_NAME if name != "string"])
@pytest.mark.parametrize("shape", [(), (0,), (2, 3), (0, 4)])
def test_every_dtype_comes_back(dtype: str, shape: tuple[int, ...]) -> None:
    array = np.ones(shape, np.int8).astype(numpy_dtype(dtype))
    back = decode(encode(Request("s", {"x": array}), {"x": dtype}), "here").inputs["x"]
    assert (back.dtype, back.shape, back.tobytes()) == (array.dtype, array.shape, array.tobytes())


def _file(dtype: Any, shape: Any, data: Any) -> bytes:
    return json.dumps({"signature": "s", "inputs": {"x": {"dtype": dtype, "shape": shape, "data": data}}}).encode()


DAMAGED = {
    "nothing": b"",
    "no object": b"[]",
    "no inputs": b'{"signature": 1}',
    "inputs are a list": b'{"signature": "s", "inputs": []}',
    "too few bytes": _file("float32", [9], ""),
    "too many bytes": _file("int8", [1], base64.b64encode(b"ab").decode()),
    "negative shape": _file("int8", [-1], base64.b64encode(b"ab").decode()),
    "a shape that takes all memory": _file("string", [10**12], []),
    "more strings than the shape": _file("string", [1], ["", ""]),
    "fewer strings than the shape": _file("string", [2], [""]),
    "text in place of strings": _file("string", [2], "AAAA"),
    "a shape that is no number": _file("int8", ["1"], base64.b64encode(b"a").decode()),
    "a shape that is no list": _file("int8", 1, base64.b64encode(b"a").decode()),
    "no such dtype": _file("float31", [1], ""),
    "a dtype that is no text": _file([], [1], ""),
    "not base64": _file("int8", [1], "*"),
    "deep": b"[" * 100_000,
    "not text": b"\xff\xfe",
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_one_error(name: str) -> None:
    with pytest.raises(errors.ManifestMalformedError, match="warm-up"):
        decode(DAMAGED[name], "here")


def test_a_bool_is_zero_or_one() -> None:
    array = decode(_file("bool", [3], base64.b64encode(b"\x00\x01\xff").decode()), "here").inputs["x"]
    assert array.view(np.uint8).tolist() == [0, 1, 1]


def test_requests_of_a_bundle_are_checked_against_their_digests(tmp_path: Path) -> None:
    with BundleWriter(tmp_path) as writer:
        writer.add_file("graph.pb", graph(node("x", "Placeholder")))
        for name in ("b", "a"):
            writer.add_file(f"warmup/{name}.json", encode(Request(name, {}), {}))
        writer.finish(engine="native", signatures={})
    bundle = open_bundle(tmp_path)
    assert [request.signature for request in read_requests(bundle)] == ["a", "b"]
    (tmp_path / "warmup" / "a.json").write_bytes(encode(Request("c", {}), {}))
    with pytest.raises(errors.DigestError):
        read_requests(bundle)
