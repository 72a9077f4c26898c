"""The wire format of protocol buffers: numbers of variable length, and the two kinds of field that Glowplug writes.

Only bytes are known here, no messages. A reader never looks past the end it was given.
"""

from __future__ import annotations

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5

_LONGEST = 10  # bytes: seven bits each, of 64


def read_varint(data: bytes | memoryview, position: int, end: int) -> tuple[int, int]:
    """Return the number that begins at `position`, and where it ends; raise `ValueError` if it is none.

    A number may be written longer than it need be, as protobuf allows. `end` is at most the length of `data`.
    """
    value = 0
    for place in range(position, min(end, position + _LONGEST)):
        byte = data[place]
        value |= (byte & 0x7F) << 7 * (place - position)
        if byte < 0x80:
            if value >> 64:
                break
            return value, place + 1
    raise ValueError(f"the number at byte {position} does not end or has more than 64 bits")


def write_varint(value: int) -> bytes:
    """Return a number in its shortest form; a negative one as the 64 bits of its two's complement."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def integer_field(number: int, value: int) -> bytes:
    """Return field `number` with an integer in it."""
    return write_varint(number << 3 | VARINT) + write_varint(value)


def bytes_field(number: int, payload: bytes) -> bytes:
    """Return field `number` with bytes in it: a text, a message or packed numbers."""
    return write_varint(number << 3 | BYTES) + write_varint(len(payload)) + payload
