"""Values that are their own description: the text says all there is to know about them.

Only exact types count, and only texts that are never cut or rounded. A subclass is an object, which is walked.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import fractions
import hashlib
import logging
import math
import pathlib
import re
import struct
import threading
import uuid
from functools import lru_cache
from typing import Any

import numpy as np

from glowplug.train.fingerprint.stock.trusted import is_stock_class, is_stock_module

from .errors import NoKeyError

_PLAIN = frozenset(
    {
        type(None),
        bool,
        int,
        str,
        bytes,
        range,
        type(...),
        type(NotImplemented),
        datetime.date,
        datetime.timedelta,
        datetime.timezone,
        decimal.Decimal,
        fractions.Fraction,
        pathlib.PurePosixPath,
        pathlib.PureWindowsPath,
        pathlib.PosixPath,
    }
)
_LOCKS = frozenset({type(threading.Lock()), type(threading.RLock())})
_OF_LOGGERS = frozenset({"handlers", "filters", "parent", "manager", "_cache"})
_CONTAINERS = frozenset({dict, list, tuple, set, frozenset})


def leaf_text(value: Any) -> str | None:
    """Return the text that stands for `value`, or None if it must be walked."""
    kind = type(value)
    if kind in _PLAIN:
        return repr(value)
    if kind in _CONTAINERS:
        return None
    if kind is float:
        return struct.pack("<d", value).hex() if math.isnan(value) else repr(value)
    if kind is complex:
        return struct.pack("<dd", value.real, value.imag).hex()
    if kind is datetime.datetime or kind is datetime.time:
        return repr(value) if value.tzinfo is None or type(value.tzinfo) is datetime.timezone else None
    if kind is re.Pattern and type(value.pattern) in _PLAIN:
        return f"{value.flags} {value.pattern!r}"  # its own text is cut at 200 characters
    if kind is uuid.UUID:
        return f"{value!r} {value.is_safe}"
    if kind in _LOCKS:
        owned = getattr(value, "_is_owned", bool)()  # by this thread, which can take it again
        return f"{kind.__name__} {'locked' if repr(value).startswith('<locked') else 'unlocked'} {owned}"
    if kind in (logging.Logger, logging.RootLogger):
        return _logger_text(value)
    if issubclass(kind, np.ndarray):
        return _array_text(value)
    if issubclass(kind, np.generic):
        stock = is_stock_class(kind) and not value.dtype.hasobject and is_plain_dtype(value.dtype)
        return f"{kind.__name__} {_dtype_text(value.dtype)} {value.tobytes().hex()}" if stock else None
    if issubclass(kind, np.dtype):
        return _dtype_text(value) if is_plain_dtype(value) else None
    if issubclass(kind, enum.Enum):
        return f"{kind.__qualname__}.{value.name}" if is_stock_class(kind) else None
    eager, described = _tensorflow_types()
    if issubclass(kind, eager):
        return _tensor_text(value)
    if issubclass(kind, described) and kind is not _cut_in_texts() and is_stock_class(kind):
        added = getattr(value, "__dict__", {}).keys() - {"__doc__"}
        if added:
            raise NoKeyError(f"a {kind.__name__} has an attribute {min(added)} that is not TensorFlow's")
        return f"{kind.__name__} {value!r}"
    return None


def _logger_text(value: logging.Logger | None) -> str:
    """What can be read of a logger: numbers of handlers and filters, and all that is plain, up to the root."""
    if value is None:
        return ""
    state = vars(value)
    added = sorted(name for name in state.keys() - _OF_LOGGERS if type(state[name]) not in _PLAIN)
    if added:
        raise NoKeyError(f"the logger {value.name} has an attribute {added[0]} of the program's own")
    plain = sorted(f"{name}={each!r}" for name, each in state.items() if type(each) in _PLAIN)
    handlers = [f"{type(each).__qualname__} {each.level!r} {len(each.filters)}" for each in value.handlers]
    said = f"{' '.join(plain)} handlers {handlers} filters {len(value.filters)}"
    return f"logger {said} in {_logger_text(value.parent)}"


def is_plain_dtype(dtype: np.dtype[Any]) -> bool:
    """Whether the text of a dtype says all: neither it nor its fields have metadata or a class of the program's."""
    if dtype.metadata is not None or not is_stock_module(dtype.type.__module__):
        return False
    if dtype.subdtype is not None:
        return is_plain_dtype(dtype.subdtype[0])
    return all(is_plain_dtype(field[0]) for field in (dtype.fields or {}).values())


def _dtype_text(dtype: np.dtype[Any]) -> str:
    """Return its text, and those of what it is made of: of a structure inside another it says less than of itself."""
    inner = [field[0] for field in (dtype.fields or {}).values()] + ([dtype.subdtype[0]] if dtype.subdtype else [])
    return " of ".join([repr(dtype), *map(_dtype_text, inner)])


@lru_cache(maxsize=1)
def _of_arrays() -> dict[Any, frozenset[str]]:
    """Return what numpy itself keeps on arrays of its classes. Asked late: it matters when `numpy.ma` is imported."""
    masked = ["_mask", "_hardmask", "_sharedmask", "_fill_value", "_optinfo", "_basedict", "_isfield", "_baseclass"]
    mapped = ["_mmap", "filename", "mode", "offset"]
    return {np.ma.MaskedArray: frozenset(masked), np.memmap: frozenset(mapped)}


def _array_text(value: np.ndarray[Any, Any]) -> str | None:
    if getattr(value, "__dict__", {}).keys() - _of_arrays().get(type(value), frozenset()):
        return None  # what was put there must be walked
    if type(value) is np.ma.MaskedArray:
        parts = [_array_text(each) for each in (value.data, np.ma.getmaskarray(value), np.asarray(value.fill_value))]
        unknown = None in parts or vars(value)["_optinfo"]
        return None if unknown else f"masked {parts} {value.hardmask} {value.sharedmask}"
    if type(value) is np.matrix:
        return f"matrix {_array_text(np.asarray(value))}"  # its operators mean something else
    if type(value) not in (np.ndarray, np.memmap) or not is_plain_dtype(value.dtype):
        return None
    if value.dtype.hasobject:
        plain = value.dtype == object and all(type(item) in _PLAIN for item in value.flat)
        return f"object array {list(value.shape)} {value.tolist()!r}" if plain else None
    body = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
    order = "" if value.flags.c_contiguous else f" strides {value.strides}"
    flags = "".join(
        f" {name}"
        for name, usual in (("writeable", True), ("aligned", True), ("writebackifcopy", False))
        if getattr(value.flags, name) is not usual
    )
    mapped = f" {value.filename} {value.mode} {value.offset}" if type(value) is np.memmap else ""
    return f"array {_dtype_text(value.dtype)}{list(value.shape)}{order}{flags}{mapped} {body}"


def _tensor_text(value: Any) -> str | None:
    if value.dtype.name in ("resource", "variant"):
        return None
    if vars(value):  # TensorFlow keeps nothing there
        raise NoKeyError(f"a tensor has an attribute {min(vars(value))} that is not TensorFlow's")
    numbers = value.numpy()
    text = _array_text(numbers) if isinstance(numbers, np.ndarray) else leaf_text(numbers)
    return None if text is None else f"tensor {text}"


@lru_cache(maxsize=1)
def _cut_in_texts() -> type[Any]:
    """Return the class of descriptions that write arrays as numpy does: cut, and rounded."""
    from tensorflow.python.framework.tensor import BoundedTensorSpec

    found: type[Any] = BoundedTensorSpec
    return found


@lru_cache(maxsize=1)
def _tensorflow_types() -> tuple[type[Any], tuple[type[Any], ...]]:
    from tensorflow.python.framework import dtypes, tensor_shape, type_spec
    from tensorflow.python.framework.ops import EagerTensor

    return EagerTensor, (dtypes.DType, tensor_shape.TensorShape, type_spec.TypeSpec)
