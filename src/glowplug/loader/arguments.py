"""Turns what a caller passes into the arrays a signature takes, and says clearly what does not fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from glowplug.core.dtypes import numpy_dtype
from glowplug.core.errors import InputError
from glowplug.core.manifest import Port, Signature

if TYPE_CHECKING:
    from numpy.typing import NDArray


def bind(name: str, signature: Signature, value: Any, named: Mapping[str, Any]) -> list[NDArray[Any]]:
    """Return one array for each input, in the signature's order."""
    given = _by_name(name, signature, value, named)
    unknown = sorted(set(given) - set(signature.inputs))
    missing = sorted(set(signature.inputs) - set(given))
    if unknown or missing:
        parts = [f"unknown {', '.join(map(repr, unknown))}"] if unknown else []
        parts += [f"missing {', '.join(map(repr, missing))}"] if missing else []
        raise _refused(name, signature, f"input names do not match: {'; '.join(parts)}")
    return [_as_array(name, signature, key, port, given[key]) for key, port in signature.inputs.items()]


def _by_name(name: str, signature: Signature, value: Any, named: Mapping[str, Any]) -> Mapping[str, Any]:
    if value is None:
        return named
    if named:
        raise _refused(name, signature, "inputs were given both by position and by name")
    if isinstance(value, Mapping):
        return value
    if len(signature.inputs) == 1:
        return {next(iter(signature.inputs)): value}
    raise _refused(name, signature, f"{len(signature.inputs)} inputs are needed, in a dict by name")


def _as_array(name: str, signature: Signature, key: str, port: Port, value: Any) -> NDArray[Any]:
    if port.spec.dtype == "string":
        return _as_strings(name, signature, key, value)
    wanted = numpy_dtype(port.spec.dtype)
    plain = not hasattr(value, "dtype")  # a number or nested lists, which have no dtype of their own
    try:
        array = np.asarray(value)
        if plain and array.dtype != wanted and _carries(array, wanted):
            array = np.asarray(value, wanted)
    except (ValueError, TypeError, OverflowError) as error:
        raise _refused(name, signature, f"input {key!r} is no array: {error}") from error
    if array.dtype != wanted:
        raise _refused(name, signature, f"input {key!r} must be {port.spec}, not {array.dtype}{list(array.shape)}")
    return array


def _carries(array: NDArray[Any], wanted: np.dtype[Any]) -> bool:
    if not array.size:
        return True
    if "b" in (wanted.kind, array.dtype.kind):
        return wanted.kind == array.dtype.kind
    return array.dtype != object and (wanted.kind not in "iu" or array.dtype.kind in "iu")


def _as_strings(name: str, signature: Signature, key: str, value: Any) -> NDArray[Any]:
    array = np.asarray(value, object)
    if isinstance(value, np.ndarray) and value.dtype.kind not in "OSU":
        raise _refused(name, signature, f"input {key!r} must be strings, not {value.dtype}{list(value.shape)}")
    for item in array.flat:
        if not isinstance(item, str | bytes):
            raise _refused(name, signature, f"input {key!r} must be strings, not {type(item).__name__}")
    return array


def _refused(name: str, signature: Signature, reason: str) -> InputError:
    return InputError(f"signature {name!r} cannot take this call", seen=reason, remedy=f"it is {signature}")
