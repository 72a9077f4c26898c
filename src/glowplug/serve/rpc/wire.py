"""gRPC's own part of the wire: header blocks of answers, status and message as trailers, timeouts, compression."""

from __future__ import annotations

import string
import zlib
from functools import cache
from urllib.parse import quote

from glowplug.core.errors import RequestError
from glowplug.serve.wire.statuses import CODES

from .http2.headers import literal, status
from .http2.sender import PREFIX, Answer

IDENTITY, GZIP, DEFLATE = b"identity", b"gzip", b"deflate"
_WINDOW_BITS = {GZIP: 31, DEFLATE: 15}
_COMPRESSION_LEVEL = 1
_FED_BYTES = 1 << 16  # of a compressed message at a time: what zlib leaves of it is copied
_ACCEPTED = literal(b"grpc-accept-encoding", b"identity, deflate, gzip")
_GRPC = literal(b"content-type", b"application/grpc")
_PRINTABLE = (string.ascii_letters + string.digits + string.punctuation + " ").replace("%", "")
_MAX_TEXT_BYTES = 4096  # clients bound the headers that they take, by default at twice this
_MAX_TIMEOUT_DIGITS = 8
_UNITS = {b"H": 3600.0, b"M": 60.0, b"S": 1.0, b"m": 1e-3, b"u": 1e-6, b"n": 1e-9}

HEAD = status(200) + _GRPC + _ACCEPTED
GZIP_HEAD = HEAD + literal(b"grpc-encoding", GZIP)
OK = literal(b"grpc-status", b"0")
ANSWER = Answer(HEAD, OK)


def trailers(code: str, text: str) -> bytes:
    """Return the block that ends a call which did not go well."""
    return literal(b"grpc-status", str(CODES[code]).encode()) + literal(b"grpc-message", percent_encoded(text))


def percent_encoded(text: str) -> bytes:
    """Return a message in the form of the field `grpc-message`."""
    encoded = quote(text, safe=_PRINTABLE, errors="replace")[:_MAX_TEXT_BYTES]
    cut = encoded.rfind("%", -2)  # half a character at the end
    return (encoded[:cut] if cut >= 0 else encoded).encode("ascii")


@cache
def http_refusal(code: int) -> bytes:
    """Return the block for what is no gRPC call at all."""
    return status(code)


def read_timeout(value: bytes) -> float | None:
    """Return the seconds of a `grpc-timeout`, or `None` where it is not one."""
    digits, unit = value[:-1], _UNITS.get(value[-1:])
    if unit is None or not digits.isdigit() or len(digits) > _MAX_TIMEOUT_DIGITS:
        return None
    return int(digits) * unit


def is_known(encoding: bytes) -> bool:
    """Say whether messages can be read in this encoding."""
    return encoding == IDENTITY or encoding in _WINDOW_BITS


def compressed(message: bytes) -> bytes:
    """Return a message with its prefix, compressed."""
    packer = zlib.compressobj(_COMPRESSION_LEVEL, zlib.DEFLATED, _WINDOW_BITS[GZIP])
    data = packer.compress(message) + packer.flush()
    return PREFIX.pack(1, len(data)) + data


class Unpacker:
    """Unpacks one compressed message, a part at a time."""

    def __init__(self, data: bytes, encoding: bytes) -> None:
        bits = _WINDOW_BITS.get(encoding)
        if bits is None:
            raise RequestError("a message is compressed, and grpc-encoding does not say how", code="INTERNAL")
        self._encoding, self._data, self._position = encoding.decode(), memoryview(data), 0
        self._unpacker = zlib.decompressobj(bits)
        self.done = False

    def more(self, size: int) -> bytes:
        """Return so many bytes more, or all that is left."""
        pieces = list[bytes]()
        while size and not self.done:
            rest: bytes | memoryview = self._unpacker.unconsumed_tail
            if not rest:
                rest = self._data[self._position : self._position + _FED_BYTES]
                self._position += len(rest)
            try:
                piece = self._unpacker.decompress(rest, size)
            except zlib.error:
                raise RequestError("a message cannot be decompressed", seen=self._encoding, code="INTERNAL") from None
            if not rest and not piece:
                raise RequestError("a compressed message is cut off", seen=self._encoding, code="INTERNAL")
            pieces.append(piece)
            size -= len(piece)
            self.done = self._unpacker.eof
        if self.done and (self._unpacker.unused_data or self._position < len(self._data)):
            raise RequestError(
                "a compressed message has something behind its end", seen=self._encoding, code="INTERNAL"
            )
        return b"".join(pieces)


def too_large(seen: str, limit: int) -> RequestError:
    """Return the error for a message that is not even received."""
    return RequestError(
        "Received message larger than max",
        seen=seen,
        remedy=f"send at most {limit} bytes",
        code="RESOURCE_EXHAUSTED",
    )
