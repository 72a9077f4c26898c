"""Reads the header of a `.safetensors` file. The bytes are mapped or read by `regions`.

The header is checked as the format's own library checks it: bounded, every tensor inside the file, as long as its
dtype and shape say, no hole and no overlap.
"""

from __future__ import annotations

import json
import math
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from glowplug.core.errors import WeightsError

from .entry import Entry, Plan
from .matching import by_name, by_order
from .regions import RegionFile, truncated
from .tensors import numpy_dtype
from .variables import LoadableVariable

MAX_HEADER_BYTES = 100_000_000  # the limit of the format's own library
ORDER, RANDOM_STATE = "glowplug.variables", "glowplug.random_state"

DTYPES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "C64": "complex64",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U64": "uint64",
    "U32": "uint32",
    "U16": "uint16",
    "U8": "uint8",
    "BOOL": "bool",
}


def bind(targets: tuple[LoadableVariable, ...], path: Path, files: ExitStack, *, mapped: bool) -> Plan:
    """Match a file's tensors with variables: by name, or by the order that `save_weights` recorded."""
    entries, metadata = read_entries(files.enter_context(RegionFile(path, mapped=mapped)))
    plan = by_name(targets, entries)
    if not plan.extra and all(one.entry or not one.required for one in plan.bindings):
        return plan
    order, state = _names(metadata, ORDER), _names(metadata, RANDOM_STATE)
    if set(order) != set(entries) or len(order) != len(entries):
        return plan  # another program's file, or one that was edited: its order says nothing
    ordered = by_order(targets, entries, order, frozenset(state))
    return ordered or Plan(plan.bindings, tuple(name for name in plan.extra if name not in state))


def read_entries(file: RegionFile) -> tuple[dict[str, Entry], dict[str, str]]:
    """Return the tensors of a file by name, and its metadata."""
    header, start = _read_header(file)
    metadata = header.pop("__metadata__", {})
    entries: dict[str, Entry] = {}
    spans = []
    for name, one in header.items():
        try:
            dtype, shape, (begin, end) = DTYPES[one["dtype"]], tuple(one["shape"]), one["data_offsets"]
        except (KeyError, TypeError, ValueError) as error:
            raise _malformed(file, f"tensor {name} ({error!r})") from error
        if any(type(number) is not int or number < 0 for number in (*shape, begin, end)):
            raise _malformed(file, f"tensor {name} has the shape {shape} and the offsets {begin}, {end}")
        if end - begin != math.prod(shape) * numpy_dtype(dtype).itemsize:
            raise _malformed(file, f"tensor {name} has {end - begin} bytes for {dtype}{list(shape)}")
        spans.append((begin, end, name))
        entries[name] = file.entry(name, dtype, shape, start + begin)
    expected = 0
    for begin, end, name in sorted(spans):
        if begin != expected:
            raise _malformed(file, f"tensor {name} begins at {begin} in place of {expected}")
        expected = end
    if start + expected != file.size:
        raise truncated(file.path, f"{file.size} bytes in place of {start + expected}")
    return entries, metadata if isinstance(metadata, dict) else {}


def _read_header(file: RegionFile) -> tuple[dict[str, Any], int]:
    if file.size < 8:
        raise truncated(file.path, f"{file.size} bytes")
    length = int.from_bytes(file.read(0, 8).tobytes(), "little")
    if length > MAX_HEADER_BYTES:
        raise _malformed(file, f"a header of {length} bytes")
    if 8 + length > file.size:
        raise truncated(file.path, f"{file.size} bytes, less than the header of {length}")
    try:
        header = json.loads(file.read(8, length).tobytes())
    except ValueError as error:
        raise _malformed(file, error) from error
    if not isinstance(header, dict):
        raise _malformed(file, type(header).__name__)
    return header, 8 + length


def _names(metadata: dict[str, str], key: str) -> list[str]:
    try:
        names = json.loads(metadata.get(key, "[]"))
    except (TypeError, ValueError):
        return []
    return names if isinstance(names, list) and all(isinstance(name, str) for name in names) else []


def _malformed(file: RegionFile, seen: object) -> WeightsError:
    return WeightsError(f"{file.path.name} is no safetensors file", seen=seen, remedy="save the weights again")
