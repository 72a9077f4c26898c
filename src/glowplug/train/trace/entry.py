"""The file format of a trace: magic, a bounded JSON header, then blobs.

    8 bytes   magic `GLOWTRC` and the version of the format, 1
    4 bytes   length of the header, little endian, at most 32 MB
    header    JSON: what the entry is for, the components of its key, how to run it, and `blobs`:
              [[name, offset, size], ...] within the body
    32 bytes  SHA-256 of the header
    body      the blobs, one after the other; their SHA-256 is in the header. `leaves` is deflated JSON, the
              readable values behind the key; the others are functions and constants

A reader believes nothing that it has not checked, and every way of being wrong is one error,
`DamagedEntryError`: whoever reads a damaged entry ignores it, says so, and traces as usual.
"""

from __future__ import annotations

import hashlib
import json
import struct
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .key import Key

MAGIC = b"GLOWTRC\x01"
MAX_HEADER_BYTES = 32 << 20
_PREFIX = struct.Struct("<8sI")
_DIGEST_BYTES = 32


class DamagedEntryError(Exception):
    """The bytes are not an entry, or not all of one."""


@dataclass(frozen=True, slots=True)
class Header:
    """What can be read of an entry without its graph. `info` is for people: function, model, inputs, sizes.

    The key has no leaves here; `Entry.key` has them.
    """

    key: Key
    info: Mapping[str, Any]
    created_s: float


@dataclass(frozen=True, slots=True)
class Entry:
    """One stored trace. `plan` says how to run it (JSON values only); `blobs` are the graph's functions and
    constants.
    """

    header: Header
    plan: Mapping[str, Any]
    blobs: Mapping[str, bytes]

    def key(self) -> Key:
        """Return the key with the readable values behind it."""
        try:
            leaves = json.loads(zlib.decompress(self.blobs["leaves"]))
        except (zlib.error, ValueError, KeyError) as error:
            raise DamagedEntryError(f"the values behind the key are not readable ({error})") from error
        return Key(self.header.key.components, leaves)


def encode(key: Key, info: Mapping[str, Any], plan: Mapping[str, Any], blobs: Mapping[str, bytes]) -> bytes:
    """Return the bytes of an entry."""
    leaves = {name: dict(values) for name, values in key.leaves.items()}
    blobs = {**blobs, "leaves": zlib.compress(json.dumps(leaves).encode(), 1)}
    table, offset = [], 0
    for name, blob in blobs.items():
        table.append([name, offset, len(blob)])
        offset += len(blob)
    body = b"".join(blobs.values())
    document = {
        "components": dict(key.components),
        "info": dict(info),
        "plan": dict(plan),
        "created_s": time.time(),
        "blobs": table,
        "body_sha256": hashlib.sha256(body).hexdigest(),
    }
    header = json.dumps(document, separators=(",", ":")).encode()
    if len(header) > MAX_HEADER_BYTES:
        raise DamagedEntryError(f"a header of {len(header):,} bytes")
    return _PREFIX.pack(MAGIC, len(header)) + header + hashlib.sha256(header).digest() + body


def decode(data: bytes) -> Entry:
    """Return the entry in `data`, or raise `DamagedEntryError`."""
    document, start = _document(data)
    body = memoryview(data)[start:]
    if hashlib.sha256(body).hexdigest() != document["body_sha256"]:
        raise DamagedEntryError("the body is not the one that was written")
    blobs = {}
    for name, offset, size in document["blobs"]:
        if not (isinstance(offset, int) and isinstance(size, int) and 0 <= offset <= offset + size <= len(body)):
            raise DamagedEntryError(f"the blob {name!r} reaches past the end")
        blobs[name] = bytes(body[offset : offset + size])
    return Entry(_header(document), document["plan"], blobs)


def decode_header(data: bytes) -> Header:
    """Return the header of an entry from its first bytes, or raise `DamagedEntryError`."""
    return _header(_document(data)[0])


def header_size(data: bytes) -> int:
    """Return how many bytes of an entry `decode_header` needs, from its first twelve."""
    if len(data) < _PREFIX.size:
        raise DamagedEntryError(f"only {len(data)} bytes")
    magic, length = _PREFIX.unpack_from(data)
    if magic != MAGIC:
        raise DamagedEntryError(f"it begins with {magic!r}")
    if length > MAX_HEADER_BYTES:
        raise DamagedEntryError(f"a header of {length:,} bytes")
    return int(_PREFIX.size + length + _DIGEST_BYTES)


def _document(data: bytes) -> tuple[dict[str, Any], int]:
    start = header_size(data)
    if len(data) < start:
        raise DamagedEntryError("the header is cut off")
    raw = data[_PREFIX.size : start - _DIGEST_BYTES]
    if hashlib.sha256(raw).digest() != data[start - _DIGEST_BYTES : start]:
        raise DamagedEntryError("the header is not the one that was written")
    try:
        document = json.loads(raw)
        _check(document)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DamagedEntryError(f"the header is not understood ({error})") from error
    return document, start


def _check(document: Any) -> None:
    expected = {"components": dict, "info": dict, "plan": dict, "blobs": list, "body_sha256": str}
    for name, kind in expected.items():
        if not isinstance(document[name], kind):
            raise TypeError(name)
    if not all(isinstance(row, list) and len(row) == 3 for row in document["blobs"]):
        raise TypeError("blobs")


def _header(document: Mapping[str, Any]) -> Header:
    return Header(Key(document["components"]), document["info"], float(document["created_s"]))
