"""JSON values to arrays and back, as TensorFlow Serving's REST API writes tensors.

Nested lists are dense tensors, `{"b64": "..."}` is a string of bytes, `NaN`, `Infinity` and `-Infinity` stand bare,
as in JavaScript. An output that ends in `_bytes` is written in base64; so are bytes of any other output that are not
UTF-8, which has no other valid form in JSON.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import re
import struct
from itertools import chain
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from glowplug.core.dtypes import BY_NAME, numpy_dtype
from glowplug.core.errors import RequestError
from glowplug.core.manifest import TensorSpec

from .limits import MAX_DEPTH, Limits, checked_shape

_KINDS = {
    bool: "a boolean",
    str: "a string",
    dict: "an object",
    list: "a list",
    type(None): "null",
    float: "a fraction",
}
_JSON_TYPES: dict[type, str] = {type(None): "Null", dict: "Object", list: "Array", str: "String"}
_ALLOWED: dict[str, set[type]] = {"i": {int}, "u": {int}, "b": {bool}, "f": {int, float}}
_TENSORFLOW_NAMES = {"float32": "float", "float64": "double", "float16": "half"}
_BLANKS = " \t\r\n"
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_BYTES_SUFFIX = "_bytes"


def parse(body: bytes) -> Any:
    """Return the JSON document of a request body, which must be an object."""
    if not body.strip():
        raise RequestError("JSON Parse error: The document is empty")
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as first:
        document = _parse_leniently(body, first)
    if not isinstance(document, dict):
        raise RequestError("JSON Value: is not object", seen=_shown(document))
    return document


def _parse_leniently(body: bytes, first: Exception) -> Any:
    """Parse what strict JSON does not have and TensorFlow Serving takes: bare NaN and Infinity, a byte order mark,
    anything behind the document."""
    try:
        text = body.decode("utf-8-sig").lstrip(_BLANKS)
        document = json.JSONDecoder(parse_float=_fraction, parse_int=_integer).raw_decode(text)[0]
        if _SURROGATE.search(text):
            json.dumps(document, ensure_ascii=False).encode()  # half a surrogate pair is no text
        return document
    except json.JSONDecodeError as second:
        met_later = second.pos > getattr(first, "pos", 0)  # what the strict parser stopped at was none
        raise RequestError(f"JSON Parse error: Invalid value: {second if met_later else first}") from None
    except RecursionError:
        raise RequestError("JSON Parse error: Invalid value: lists and objects are nested too deeply") from None
    except ValueError:
        raise RequestError(f"JSON Parse error: Invalid value: {first}") from None


def _fraction(text: str) -> float:
    value = float(text)
    if np.isinf(value):
        raise ValueError("Number too big to be stored in double")
    return value


def _integer(text: str) -> int | float:
    """Return a number as the strict parser does: a fraction where it takes more than 64 bits."""
    value = int(text)
    return value if -(1 << 63) <= value < 1 << 64 else _fraction(text)


def has_words(body: bytes) -> bool:
    """Say whether a document may hold `true`, `false` or `null`: each has a letter that the usual keys do not have."""
    return b"r" in body or b"l" in body


def to_array(value: Any, spec: TensorSpec, name: str, limits: Limits, *, words: bool = True) -> NDArray[Any]:
    """Return the array of a JSON value for the input `name`, which takes `spec`. `words` is what `has_words` said."""
    items, shape = _flatten(value, spec, name)
    checked_shape(name, shape, BY_NAME[spec.dtype].itemsize, limits)
    if spec.dtype == "string":
        array = np.empty(len(items), object)
        for place, item in enumerate(items):
            array[place] = text_bytes(item, name, spec)
        return array.reshape(shape)
    return _numbers(items, spec, name, words=words).reshape(shape)


def _flatten(value: Any, spec: TensorSpec, name: str) -> tuple[list[Any], list[int]]:
    """Return the elements and the shape of nested lists, level by level: ragged ones are refused on the way."""
    if not isinstance(value, list):
        return [value], []
    items, shape = value, [len(value)]
    while items and isinstance(items[0], list):
        if len(shape) > MAX_DEPTH:
            raise _refused(name, spec, f"lists nested deeper than {MAX_DEPTH} levels")
        sizes = {len(item) if isinstance(item, list) else -1 for item in items}
        if len(sizes) > 1:
            first = len(items[0])
            odd = next(item for item in items if not isinstance(item, list) or len(item) != first)
            what = f"a list of {len(odd)}" if isinstance(odd, list) else _shown(odd)
            raise _refused(name, spec, f"{what} where lists of {first} were begun, at level {len(shape)}")
        shape.append(sizes.pop())
        items = items[0] if len(items) == 1 else list(chain.from_iterable(items))
    return items, shape


def _numbers(items: list[Any], spec: TensorSpec, name: str, *, words: bool) -> NDArray[Any]:
    wanted = numpy_dtype(spec.dtype)
    if not words and wanted.kind not in "iub":  # then only numbers can be packed, and each need not be looked at first
        with contextlib.suppress(struct.error):
            return _fractions(items, wanted)
    allowed = _ALLOWED.get(wanted.kind, _ALLOWED["f"])
    if not set(map(type, items)) <= allowed:
        odd = next(item for item in items if type(item) not in allowed)
        raise _mistyped(name, spec, odd)
    if wanted.kind in "iu":
        return _integers(items, wanted, spec, name)
    if wanted.kind == "b":
        return np.array(items, wanted)
    return _fractions(items, wanted)


def _integers(items: list[Any], wanted: np.dtype[Any], spec: TensorSpec, name: str) -> NDArray[Any]:
    low, high = int(np.iinfo(wanted).min), int(np.iinfo(wanted).max)
    wide = wanted == np.uint64
    try:
        array = np.array(items, np.uint64 if wide else np.int64)
    except OverflowError:
        fits = False
    else:  # numpy before release 2 wraps negative numbers around
        lowest = min(items, default=0) if wide else int(array.min(initial=0))
        fits = low <= lowest and int(array.max(initial=0)) <= high
    if not fits:
        odd = next(item for item in items if not low <= item <= high)
        raise _refused(name, spec, f"{_shown(odd)}, which is out of range")
    return array.astype(wanted)


def _fractions(items: list[Any], wanted: np.dtype[Any]) -> NDArray[Any]:
    """Return floating-point elements. As documented, what they cannot hold is rounded, to an infinity at the end."""
    if wanted.char == "f":
        with contextlib.suppress(OverflowError):
            return np.frombuffer(struct.pack(f"{len(items)}f", *items), wanted)
    exact = np.frombuffer(struct.pack(f"{len(items)}d", *items), np.float64)
    with np.errstate(over="ignore"):
        return exact.astype(wanted)


def is_base64(value: Any) -> bool:
    """Say whether a value is a string of bytes: an object whose only key is `b64`."""
    return isinstance(value, dict) and len(value) == 1 and isinstance(value.get("b64"), str)


def text_bytes(value: Any, name: str, spec: TensorSpec | None) -> bytes:
    """Return the bytes of a JSON string or base64 object."""
    if isinstance(value, str):
        try:
            return value.encode()
        except UnicodeEncodeError:
            raise RequestError(f"input {name!r} holds text that is not Unicode") from None
    if not is_base64(value):
        raise _mistyped(name, spec, value)
    text = "".join(value["b64"].split()).rstrip("=")
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise RequestError(f"input {name!r}: unable to base64 decode", seen=_shown(value["b64"])) from None


def to_json(array: NDArray[Any], name: str) -> Any:
    """Return what `dumps` writes for the output `name`: an array it takes as it is, or nested lists."""
    kind = array.dtype.kind
    if array.dtype == object:
        return _nested(array.tolist(), _base64 if name.endswith(_BYTES_SUFFIX) else _text)
    if kind == "c":
        raise RequestError("Failed to write JSON value for tensor type", seen=f"{array.dtype} of output {name!r}")
    if kind == "V" or (array.dtype.itemsize < 4 and kind == "f"):
        array = array.astype(np.float32)
    return np.ascontiguousarray(array) if array.ndim else array.item() if kind in "iub" else array[()]


def dumps(document: Any) -> bytes:
    """Write a document whose leaves may be arrays. NaN and infinities are written bare."""
    text = orjson.dumps(document, option=orjson.OPT_SERIALIZE_NUMPY)
    if b"null" in text:  # which is what they became
        return json.dumps(document, default=_plain, ensure_ascii=False).encode()
    return text


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        if value.dtype.kind == "f":
            value = value.astype(str).astype(np.float64)  # by way of text: the digits of a float32 and no more
        return value.tolist()
    raise TypeError(type(value).__name__)


def _nested(value: Any, convert: Any) -> Any:
    return [_nested(item, convert) for item in value] if isinstance(value, list) else convert(value)


def _base64(value: bytes | str) -> dict[str, str]:
    return {"b64": base64.b64encode(value.encode() if isinstance(value, str) else value).decode()}


def _text(value: bytes | str) -> Any:
    try:
        return value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError:
        return _base64(value)


def _mistyped(name: str, spec: TensorSpec | None, value: Any) -> RequestError:
    wanted = _TENSORFLOW_NAMES.get(spec.dtype, spec.dtype) if spec else "string"
    kind = _KINDS.get(type(value), "a number")
    return _refused(name, spec, f"{kind} {_shown(value)} that is not of expected type: {wanted}")


def _refused(name: str, spec: TensorSpec | None, seen: str) -> RequestError:
    return RequestError(f"input {name!r} must be {spec or 'text'}", seen=f"got {seen}")


def json_type(value: Any) -> str:
    """Return TensorFlow Serving's name for the type of a JSON value."""
    if isinstance(value, bool):
        return str(value)
    return _JSON_TYPES.get(type(value), "Number")


def _shown(value: Any) -> str:
    try:
        text = json.dumps(value, default=str)
    except (ValueError, RecursionError):
        return "a value nested too deeply"
    return text if len(text) <= 80 else f"{text[:77]}..."
