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

from glowplug.core.dtypes import BY_NAME
from glowplug.core.errors import ManifestMalformedError
from glowplug.runtime.tensor import numpy_dtype


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


def _encode_array(array: NDArray[Any], dtype: str) -> dict[str, Any]:
    data: Any
    if dtype == "string":
        items = (item.encode() if isinstance(item, str) else bytes(item) for item in array.flat)
        data = [base64.b64encode(item).decode() for item in items]
    else:
        data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
    return {"dtype": dtype, "shape": list(array.shape), "data": data}


def _decode_array(value: Any) -> NDArray[Any]:
    dtype, shape = BY_NAME[value["dtype"]], tuple(int(size) for size in value["shape"])
    if dtype.name == "string":
        array = np.empty(math.prod(shape), object)
        for place, item in enumerate(value["data"]):
            array[place] = base64.b64decode(item, validate=True)
        return array.reshape(shape)
    data = bytearray(base64.b64decode(value["data"], validate=True))
    return np.frombuffer(data, numpy_dtype(dtype.name)).reshape(shape)
