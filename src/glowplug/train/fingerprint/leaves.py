"""Values that are their own description: the text says all there is to know about them."""

from __future__ import annotations

import datetime
import decimal
import enum
import fractions
import hashlib
import logging
import pathlib
import re
import threading
import uuid
from functools import lru_cache
from typing import Any

import numpy as np

from .trusted import is_stock_module

_PLAIN = frozenset(
    {
        type(None),
        bool,
        int,
        float,
        complex,
        str,
        bytes,
        range,
        slice,
        type(...),
        type(NotImplemented),
        datetime.date,
        datetime.datetime,
        datetime.timedelta,
        decimal.Decimal,
        fractions.Fraction,
        uuid.UUID,
        re.Pattern,
    }
)
_WITHOUT_STATE: tuple[type[Any], ...] = (type(threading.Lock()), type(threading.RLock()), logging.Logger)
_CONTAINERS = frozenset({dict, list, tuple, set, frozenset})


def leaf_text(value: Any) -> str | None:
    """Return the text that stands for `value`, or None if it must be walked."""
    kind = type(value)
    if kind in _PLAIN:
        return repr(value)
    if kind in _CONTAINERS:
        return None
    if isinstance(value, np.ndarray):
        return _array_text(value)
    if isinstance(value, np.generic):
        return f"{value.dtype} {value!r}"
    if isinstance(value, (np.dtype, pathlib.PurePath)):
        return repr(value)
    if isinstance(value, _WITHOUT_STATE):
        return kind.__name__
    if isinstance(value, enum.Enum):
        return f"{kind.__qualname__}.{value.name}" if is_stock_module(kind.__module__) else None
    eager, described = _tensorflow_types()
    if isinstance(value, eager):
        return _tensor_text(value)
    if isinstance(value, described):
        return f"{kind.__name__} {value!r}"
    return None


def _array_text(value: np.ndarray[Any, Any]) -> str | None:
    if type(value) is np.ma.MaskedArray:
        parts = [_array_text(each) for each in (value.data, np.ma.getmaskarray(value), np.asarray(value.fill_value))]
        return None if None in parts else f"masked {parts}"
    if type(value) is np.matrix:
        return f"matrix {_array_text(np.asarray(value))}"  # its operators mean something else
    if type(value) not in (np.ndarray, np.memmap):
        return None
    if value.dtype.hasobject:
        plain = all(type(item) in _PLAIN for item in value.flat)
        return f"object array {list(value.shape)} {value.tolist()!r}" if plain else None
    body = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
    return f"array {value.dtype}{list(value.shape)} {body}"


def _tensor_text(value: Any) -> str | None:
    if value.dtype.name in ("resource", "variant"):
        return None
    text = _array_text(value.numpy()) if isinstance(value.numpy(), np.ndarray) else repr(value.numpy())
    return None if text is None else f"tensor {text}"


@lru_cache(maxsize=1)
def _tensorflow_types() -> tuple[type[Any], tuple[type[Any], ...]]:
    from tensorflow.python.framework import dtypes, tensor_shape, type_spec
    from tensorflow.python.framework.ops import EagerTensor

    return EagerTensor, (dtypes.DType, tensor_shape.TensorShape, type_spec.TypeSpec)
