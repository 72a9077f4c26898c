"""The wire form of HTTP/2 frames (RFC 9113): numbers, flags, heads of frames, and the two ways of being wrong."""

from __future__ import annotations

import struct
from enum import IntEnum

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)

END_STREAM = ACK = 0x01
END_HEADERS = 0x04
PADDED = 0x08
WITH_PRIORITY = 0x20

HEADER_TABLE_SIZE, ENABLE_PUSH, MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE, MAX_HEADER_LIST_SIZE = (
    range(1, 7)
)

HEAD_BYTES = 9
HEAD = struct.Struct(">IBI")  # u24 length and u8 type as one word, u8 flags, u32 stream
WORD = struct.Struct(">I")
SETTING = struct.Struct(">HI")
LAST_AND_CODE = struct.Struct(">II")

MAX_WINDOW = MAX_STREAM_NUMBER = (1 << 31) - 1
FIRST_WINDOW = (1 << 16) - 1  # of both sides, until settings say otherwise
SMALLEST_MAX_FRAME, LARGEST_MAX_FRAME = 1 << 14, (1 << 24) - 1
DEFAULT_TABLE_SIZE = 4096


class Code(IntEnum):
    """Why a stream or a connection ends."""

    NO_ERROR = 0
    PROTOCOL_ERROR = 1
    INTERNAL_ERROR = 2
    FLOW_CONTROL_ERROR = 3
    SETTINGS_TIMEOUT = 4
    STREAM_CLOSED = 5
    FRAME_SIZE_ERROR = 6
    REFUSED_STREAM = 7
    CANCEL = 8
    COMPRESSION_ERROR = 9
    CONNECT_ERROR = 10
    ENHANCE_YOUR_CALM = 11


class BrokenConnectionError(Exception):
    """The peer broke the protocol in a way that ends the connection."""

    def __init__(self, code: Code, text: str) -> None:
        self.code = code
        super().__init__(text)


class BrokenStreamError(Exception):
    """The peer broke the protocol in a way that ends one stream."""

    def __init__(self, code: Code, text: str) -> None:
        self.code = code
        super().__init__(text)


def frame(kind: int, flags: int, number: int, payload: bytes = b"") -> bytes:
    """Return a whole frame."""
    return HEAD.pack(len(payload) << 8 | kind, flags, number) + payload


def reset(number: int, code: Code) -> bytes:
    """Return an RST_STREAM frame."""
    return frame(RST_STREAM, 0, number, WORD.pack(code))


def window_update(number: int, increment: int) -> bytes:
    """Return a WINDOW_UPDATE frame; number 0 is the whole connection."""
    return frame(WINDOW_UPDATE, 0, number, WORD.pack(increment))


def goaway(last: int, code: Code, text: str = "") -> bytes:
    """Return a GOAWAY frame. Streams above `last` will not be answered."""
    return frame(GOAWAY, 0, 0, LAST_AND_CODE.pack(last, code) + text.encode())


def settings(values: dict[int, int]) -> bytes:
    """Return a SETTINGS frame."""
    return frame(SETTINGS, 0, 0, b"".join(SETTING.pack(*one) for one in values.items()))


def read_settings(payload: bytes) -> list[tuple[int, int]]:
    """Return the settings of a frame in order, each within its bounds."""
    if len(payload) % SETTING.size:
        raise BrokenConnectionError(Code.FRAME_SIZE_ERROR, "SETTINGS of a wrong size")
    found = [(int(key), int(value)) for key, value in SETTING.iter_unpack(payload)]
    for key, value in found:
        if key == ENABLE_PUSH and value > 1:
            raise BrokenConnectionError(Code.PROTOCOL_ERROR, "ENABLE_PUSH is neither 0 nor 1")
        if key == INITIAL_WINDOW_SIZE and value > MAX_WINDOW:
            raise BrokenConnectionError(Code.FLOW_CONTROL_ERROR, "INITIAL_WINDOW_SIZE is too large")
        if key == MAX_FRAME_SIZE and not SMALLEST_MAX_FRAME <= value <= LARGEST_MAX_FRAME:
            raise BrokenConnectionError(Code.PROTOCOL_ERROR, "MAX_FRAME_SIZE is out of bounds")
    return found


def without_padding(flags: int, data: bytes, start: int, stop: int) -> tuple[int, int]:
    """Return where the content of a padded frame begins and ends."""
    if not flags & PADDED:
        return start, stop
    if start == stop:
        raise BrokenConnectionError(Code.FRAME_SIZE_ERROR, "a padded frame without its length")
    padding = data[start]
    start += 1
    if start + padding > stop:
        raise BrokenConnectionError(Code.PROTOCOL_ERROR, "more padding than frame")
    return start, stop - padding
