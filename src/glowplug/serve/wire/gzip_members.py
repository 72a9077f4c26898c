"""Bodies that are packed with gzip: of one member or several (RFC 1952, 2.2), never unfolded beyond a bound."""

from __future__ import annotations

import zlib

from glowplug.core.errors import RequestError

_FED_BYTES = 1 << 16  # at a time: what a member leaves of it is copied
_MAX_MEMBERS = 1000  # an empty one takes twenty bytes, and as much work as a kilobyte of another


def unpacked(data: bytes | memoryview, limit: int) -> bytes | None:
    """Return what a body holds, `None` where that is more than `limit` bytes."""
    view, position = memoryview(data), 0
    pieces, size = list[bytes](), 0
    for _ in range(_MAX_MEMBERS):
        member = zlib.decompressobj(31)
        while not member.eof:
            part = view[position : position + _FED_BYTES]
            if not part:
                raise RequestError("the gzip body is cut off", seen=f"{len(view)} bytes")
            try:
                piece = member.decompress(part, limit + 1 - size)
            except zlib.error as error:
                raise RequestError("the body is not gzip", seen=str(error)[:200]) from None
            position += len(part) - len(member.unconsumed_tail) - len(member.unused_data)
            pieces.append(piece)
            size += len(piece)
            if size > limit:
                return None
        if position == len(view):
            return b"".join(pieces)
    raise RequestError("the gzip body has too many members", remedy=f"at most {_MAX_MEMBERS}")
