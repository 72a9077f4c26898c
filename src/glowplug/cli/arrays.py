"""Arrays in files: `.npy` and `.json` in; `.npy`, `.npz` and `.json` out.

In JSON an array is nested lists. Bytes that are not UTF-8 are `{"b64": "..."}` as in TensorFlow Serving; NaN and
infinities are "NaN", "Infinity" and "-Infinity" as in protobuf's JSON; a complex number is [real, imaginary].
"""

from __future__ import annotations

import base64
import binascii
import io
import json
import math
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glowplug.core.disk.regular_files import open_regular
from glowplug.core.dtypes import numpy_dtype
from glowplug.core.errors import InputError, UsageError
from glowplug.core.manifest import TensorSpec

_SPECIAL = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


def read_input(path: Path, spec: TensorSpec | None) -> Any:
    """Read one input: an array from `.npy`, plain values from `.json`. `spec` is what the signature takes, if known."""
    refuse_unknown_kind(path)
    try:
        return _read_npy(path, spec) if path.suffix == ".npy" else _read_json(path, spec)
    except FileNotFoundError:
        raise UsageError("there is no such input file", seen=path, remedy="check the path") from None
    except OSError as error:
        seen = f"{path} ({error.strerror})"
        raise UsageError(
            "the input file cannot be opened", seen=seen, remedy="name a file that you may read"
        ) from error
    except (ValueError, EOFError, TypeError, RecursionError, MemoryError, binascii.Error, zipfile.BadZipFile) as error:
        pickled = "allow_pickle" in str(error)
        remedy = "save strings with a fixed-width dtype, or as JSON" if pickled else "write it again, without errors"
        reason = "it holds Python objects" if pickled else str(error)
        raise InputError("the input file cannot be read", seen=f"{path} ({reason})", remedy=remedy) from error


def refuse_unknown_kind(path: Path) -> None:
    """Raise where a file is none that is read."""
    if path.suffix not in (".npy", ".json"):
        remedy = "save it with numpy.save, or as nested lists in JSON"
        raise UsageError("an input file is .npy or .json", seen=repr(str(path)), remedy=remedy)


def _read_npy(path: Path, spec: TensorSpec | None) -> NDArray[Any]:
    with os.fdopen(open_regular(path), "rb") as stream:
        array = np.lib.format.read_array(stream, allow_pickle=False)
    if array.dtype.kind == "V" and spec is not None and spec.dtype != "string":
        wanted = numpy_dtype(spec.dtype)  # numpy's format does not know the names of ml_dtypes
        return array.view(wanted) if array.dtype.itemsize == wanted.itemsize else array
    return array


def _read_json(path: Path, spec: TensorSpec | None) -> Any:
    floats = spec is not None and spec.dtype.startswith(("float", "bfloat"))

    def revive(value: Any) -> Any:
        if isinstance(value, list):
            return [revive(item) for item in value]
        if isinstance(value, dict):
            if set(value) != {"b64"}:
                raise ValueError('an object other than {"b64": ...} is no element')
            return base64.b64decode(value["b64"], validate=True)
        return _SPECIAL.get(value, value) if floats and isinstance(value, str) else value

    with os.fdopen(open_regular(path), encoding="utf-8") as stream:
        return revive(json.load(stream))


def encode_outputs(suffix: str, outputs: Mapping[str, NDArray[Any]]) -> bytes:
    """Return the bytes of an output file."""
    if suffix == ".json":
        return (json.dumps({name: to_json(array) for name, array in outputs.items()}, allow_nan=False) + "\n").encode()
    if suffix == ".npz":
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:  # numpy.savez cannot take an output that is called "file"
            for name, array in outputs.items():
                archive.writestr(f"{name}.npy", _npy(array))
        return stream.getvalue()
    if len(outputs) != 1:
        raise UsageError(
            "an .npy file holds one array",
            seen=f"{len(outputs)} outputs: {', '.join(outputs)}",
            remedy="write an .npz file",
        )
    return _npy(next(iter(outputs.values())))


def _npy(array: NDArray[Any]) -> bytes:
    stream = io.BytesIO()
    np.save(stream, _storable(array), allow_pickle=False)
    return stream.getvalue()


def _storable(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array in a form that needs no pickle: strings at a fixed width."""
    if array.dtype != object:
        return array
    if any(item.endswith(b"\0") for item in array.flat):
        raise UsageError("numpy drops zero bytes at the end of a string", seen="an output", remedy="write a .json file")
    return array.astype(np.bytes_)


def to_json(array: NDArray[Any]) -> Any:
    """Return the array as nested lists of JSON values."""
    if array.dtype == object:
        return _each(array.tolist(), _text)
    if array.dtype.kind == "c":
        return _each(np.stack([array.real, array.imag], axis=-1).tolist(), _finite)
    if array.dtype.kind in "fV":  # ml_dtypes' types are of kind V
        return _each(array.astype(np.float64).tolist(), _finite)
    return array.tolist()


def _each(value: Any, convert: Any) -> Any:
    return [_each(item, convert) for item in value] if isinstance(value, list) else convert(value)


def _text(value: bytes | str) -> Any:
    if isinstance(value, str):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(value).decode()}


def _finite(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
