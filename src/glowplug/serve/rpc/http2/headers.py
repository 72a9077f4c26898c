"""Header blocks: decoding with a memory for those that repeat, the rules of HTTP/2 for requests, constant answers.

Answers never enter the peer's dynamic table, so their blocks are constants.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Generic, TypeVar

import hpack
from hpack.exceptions import HPACKError

from .frames import BrokenConnectionError, BrokenStreamError, Code

MAX_LIST_BYTES = 1 << 14  # of a decoded block, each field counted with 32 bytes more; what grpcio takes
MAX_BLOCK_BYTES = 1 << 15
_MAX_REMEMBERED, _MAX_REMEMBERED_BYTES = 64, 1 << 12
_MAX_SIZE_UPDATES = 2  # RFC 7541, 4.2: the smallest and the last size since the block before
_CONNECTION_FIELDS = frozenset({b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"})
_NAME = re.compile(rb"[a-z0-9!#$%&'*+.^_`|~-]+")  # RFC 9113, 8.2.1
_NO_VALUE = re.compile(rb"[\0\r\n]")  # what would end a field in HTTP/1, or in a log
_PSEUDO = frozenset({b":method", b":scheme", b":authority", b":path"})
_NEEDED = frozenset({b":method", b":scheme", b":path"})

Fields = list[tuple[bytes, bytes]]
T = TypeVar("T")


class HeaderReader(Generic[T]):
    """Decodes the blocks of one connection; `read` makes of a request's fields what the layer above wants.

    A client repeats the same bytes for each call. A block that left the dynamic table as it was means the same as long
    as the table stays as it is, so its reading is remembered until a block changes the table.
    """

    def __init__(self, read: Callable[[Fields], T]) -> None:
        self._read = read
        self._decoder = hpack.Decoder(max_header_list_size=MAX_LIST_BYTES)
        self._remembered: dict[bytes, T] = {}

    def request(self, block: bytes) -> tuple[T, int]:
        """Return what `read` makes of the fields of a request, and how many were decoded for it."""
        found = self._remembered.get(block)
        if found is not None:
            return found, 0
        fields, changed = self._decode(block)
        check_request(fields)
        found = self._read(fields)
        if not changed and len(block) <= _MAX_REMEMBERED_BYTES:
            if len(self._remembered) >= _MAX_REMEMBERED:
                self._remembered.clear()
            self._remembered[block] = found
        return found, len(fields)

    def trailers(self, block: bytes) -> Fields:
        """Return the fields that end a request."""
        fields, _ = self._decode(block)
        for name, value in fields:
            if name.startswith(b":"):
                raise BrokenStreamError(Code.PROTOCOL_ERROR, "trailers hold what only a head may hold")
            _check_field(name, value)
        return fields

    def _decode(self, block: bytes) -> tuple[Fields, bool]:
        """Return the fields, and whether the dynamic table changed."""
        _check_size_updates(block)
        table = self._decoder.header_table
        entries = table.dynamic_entries
        before = (entries[0] if entries else None, len(entries), table.maxsize)
        try:
            fields = [(bytes(name), bytes(value)) for name, value in self._decoder.decode(block, raw=True)]
        except (HPACKError, IndexError) as error:
            raise BrokenConnectionError(Code.COMPRESSION_ERROR, f"header block: {type(error).__name__}") from None
        newest = entries[0] if entries else None
        changed = newest is not before[0] or (len(entries), table.maxsize) != before[1:]
        if changed:
            self._remembered.clear()
        return fields, changed


def _check_size_updates(block: bytes) -> None:
    """Refuse a block that is one size update after the other: a byte each, and work for the decoder."""
    position = updates = 0
    while position < len(block) and block[position] & 0xE0 == 0x20:
        updates += 1
        if block[position] & 0x1F == 0x1F:
            position += 1
            while position < len(block) and block[position] & 0x80:
                position += 1
        position += 1
        if updates > _MAX_SIZE_UPDATES:
            raise BrokenConnectionError(Code.COMPRESSION_ERROR, "too many table size updates")


def check_request(fields: Fields) -> None:
    """Refuse a malformed request (RFC 9113, 8.2 and 8.3)."""
    seen: dict[bytes, bytes] = {}
    regular = False
    for name, value in fields:
        if name.startswith(b":"):
            if regular or name not in _PSEUDO or name in seen:
                raise BrokenStreamError(Code.PROTOCOL_ERROR, "a pseudo field out of place")
            seen[name] = value
            continue
        regular = True
        _check_field(name, value)
        if name in _CONNECTION_FIELDS:
            raise BrokenStreamError(Code.PROTOCOL_ERROR, "a field that HTTP/2 does not have")
        if name == b"te" and value != b"trailers":
            raise BrokenStreamError(Code.PROTOCOL_ERROR, "te other than trailers")
        if name == b"content-length" and not value.isdigit():
            raise BrokenStreamError(Code.PROTOCOL_ERROR, "a length that is no number")
    if _NO_VALUE.search(b"".join(seen.values())):
        raise BrokenStreamError(Code.PROTOCOL_ERROR, "a value that no field can have")
    if not seen.keys() >= _NEEDED or not seen[b":path"]:
        raise BrokenStreamError(Code.PROTOCOL_ERROR, "a request without method, scheme or path")


def _check_field(name: bytes, value: bytes) -> None:
    if not _NAME.fullmatch(name):
        raise BrokenStreamError(Code.PROTOCOL_ERROR, "a name that no field can have")
    if _NO_VALUE.search(value):
        raise BrokenStreamError(Code.PROTOCOL_ERROR, "a value that no field can have")


def literal(name: bytes, value: bytes) -> bytes:
    """Return a field as a literal that stays out of the table."""
    return b"\0" + _string(name) + _string(value)


def status(code: int) -> bytes:
    """Return the field `:status`."""
    return b"\x88" if code == 200 else b"\x08" + _string(str(code).encode())


def _string(value: bytes) -> bytes:
    size = len(value)
    if size < 0x7F:
        return bytes([size]) + value
    out, size = bytearray(b"\x7f"), size - 0x7F
    while size > 0x7F:
        out.append(size & 0x7F | 0x80)
        size >>= 7
    out.append(size)
    return bytes(out) + value
