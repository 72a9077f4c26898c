"""`save_weights`: the weights of a model in one `.safetensors` file that can be mapped.

The format allows no hole between tensors. So the header is padded to 64 bytes and tensors of a multiple of 64 bytes
come first: they begin on 64-byte boundaries and are mapped, the few others are copied when they are loaded.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

import numpy as np

from glowplug.core.disk import unfinished
from glowplug.core.disk.files import refuse_existing, sync_directory
from glowplug.core.errors import StorageError, UnsupportedModelError, UsageError
from glowplug.core.version import VERSION

from .safetensors import DTYPES, ORDER, RANDOM_STATE
from .tensors import ALIGNMENT, numpy_dtype
from .variables import LoadableVariable, targets

_CODES = {name: code for code, name in DTYPES.items()}


def save_weights(model: Any, path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Write the weights of a Keras model, and the state of its random generators, to a `.safetensors` file.

    The file appears whole or not at all. An existing one is replaced only with `force`; a process that has it mapped
    keeps the old content.
    """
    target = Path(path)
    if target.suffix != ".safetensors":
        raise UsageError("weights are saved as safetensors", seen=target.name, remedy="use a name like x.safetensors")
    refuse_existing(target, force=force)
    chosen = targets(model)
    ordered = sorted(chosen, key=lambda one: (_nbytes(one) % ALIGNMENT != 0, -_nbytes(one)))
    try:
        unfinished.sweep(str(target.parent), target.name)
        with unfinished.new_file(str(target), sync=True) as stream:
            _write(stream, _header(chosen, ordered), ordered)
            refuse_existing(target, force=force)
        sync_directory(target.parent)
    except OSError as error:
        raise StorageError("the weights could not be written", seen=f"{target} ({error.strerror})") from error


def _write(stream: IO[bytes], header: bytes, ordered: Iterable[LoadableVariable]) -> None:
    stream.write(len(header).to_bytes(8, "little"))
    stream.write(header)
    for one in ordered:
        stream.write(np.ascontiguousarray(one.variable.numpy()).reshape(-1).view(np.uint8).data)


def _header(chosen: tuple[LoadableVariable, ...], ordered: list[LoadableVariable]) -> bytes:
    table: dict[str, Any] = {
        "__metadata__": {
            "format": "tf",
            "glowplug": VERSION,
            ORDER: json.dumps([one.name for one in chosen]),
            RANDOM_STATE: json.dumps([one.name for one in chosen if not one.required]),
        }
    }
    offset = 0
    for one in ordered:
        end = offset + _nbytes(one)
        table[one.name] = {"dtype": _code(one), "shape": list(one.variable.shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(table, separators=(",", ":")).encode()
    return text + b" " * (-(len(text) + 8) % ALIGNMENT)


def _code(target: LoadableVariable) -> str:
    code = _CODES.get(str(target.variable.dtype))
    if code is None:
        raise UnsupportedModelError("safetensors has no such dtype", seen=f"{target.name} is {target.variable.dtype}")
    return code


def _nbytes(target: LoadableVariable) -> int:
    return int(np.prod(target.variable.shape, dtype=np.int64)) * int(numpy_dtype(str(target.variable.dtype)).itemsize)
