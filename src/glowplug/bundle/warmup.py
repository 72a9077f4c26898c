"""Warm-up requests: calls kept in a bundle, to be run before the model counts as ready.

One JSON file a call: `{"signature": ..., "inputs": {name: {"dtype", "shape", "data"}}}`, where `data` is the elements'
bytes in base64, or a list of them for strings.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glowplug.core.dtypes import BY_NAME, numpy_dtype
from glowplug.core.errors import ManifestMalformedError

from .reader import Bundle


@dataclass(frozen=True, slots=True)
class Request:
    """One call of a signature."""

    signature: str
    inputs: Mapping[str, NDArray[Any]]


def encode(request: Request, dtypes: Mapping[str, str]) -> bytes:
    """Return the bytes of a warm-up file; `dtypes` gives the signature's type of each input."""
    inputs = {name: _encode_array(array, dtypes[name]) for name, array in request.inputs.items()}
    return json.dumps({"signature": request.signature, "inputs": inputs}).encode()


def decode(data: bytes, where: str) -> Request:
    """Read a warm-up file back; `where` names it in errors."""
    try:
        document = json.loads(data)
        inputs = {str(name): _decode_array(value) for name, value in document["inputs"].items()}
        return Request(str(document["signature"]), inputs)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, binascii.Error) as error:
        raise ManifestMalformedError(
            "a warm-up file is damaged", seen=f"{where} ({error})", remedy="fetch or pack the bundle again"
        ) from error


def read_requests(bundle: Bundle) -> list[Request]:
    """Return the requests that a bundle holds, in the order of their names, each checked against its digest."""
    paths = [file.relative_to(bundle.root).as_posix() for file in bundle.warmup_files]
    return [decode(bundle.read_file(path), path) for path in paths]


def _encode_array(array: NDArray[Any], dtype: str) -> dict[str, Any]:
    data: Any
    if dtype == "string":
        items = (item.encode() if isinstance(item, str) else bytes(item) for item in array.flat)
        data = [base64.b64encode(item).decode() for item in items]
    else:
        data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
    return {"dtype": dtype, "shape": list(array.shape), "data": data}


def _decode_array(value: Any) -> NDArray[Any]:
    dtype, shape = BY_NAME[value["dtype"]], tuple(value["shape"])
    if any(type(size) is not int or size < 0 for size in shape):
        raise ValueError(f"a shape of {shape}")
    count, data = math.prod(shape), value["data"]
    if dtype.name == "string":
        if type(data) is not list or len(data) != count:  # before memory is taken for what the shape says
            raise ValueError(f"{len(data)} strings for a shape of {shape}")
        array = np.empty(count, object)
        for place, item in enumerate(data):
            array[place] = base64.b64decode(item, validate=True)
        return array.reshape(shape)
    content = np.frombuffer(bytearray(base64.b64decode(data, validate=True)), np.uint8)
    if len(content) != count * dtype.itemsize:
        raise ValueError(f"{len(content)} bytes for {dtype.name} in a shape of {shape}")
    if dtype.name == "bool":
        content &= 1  # compiled code may assume that a bool is 0 or 1
    return content.view(numpy_dtype(dtype.name)).reshape(shape)
