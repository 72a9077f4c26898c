"""Walks over the heads of a message's fields without reading what is in them, as far as that is quick."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from glowplug.core.protobuf_wire import BYTES, FIXED32, FIXED64, VARINT, read_varint

MAX_FIELDS = 1 << 10


class Field(NamedTuple):
    """One field: its number, its kind, where its content begins and ends, and its value where it is a number."""

    number: int
    kind: int
    start: int
    end: int
    value: int

    @property
    def size(self) -> int:
        """Length of the content."""
        return self.end - self.start


class TooManyFieldsError(Exception):
    """There are more fields than are looked at here."""


class FieldScan:
    """The fields of one message, at every level that is asked for; all together `MAX_FIELDS` at most."""

    def __init__(self, data: bytes) -> None:
        self._data, self._left = data, MAX_FIELDS

    def fields(self, within: Field | None = None) -> Iterator[Field]:
        """Yield the fields of the message, or of one in it; raise `ValueError` where it is none."""
        data, position, end = self._data, 0, len(self._data)
        if within is not None:
            position, end = within.start, within.end
        while position < end:
            self._left -= 1
            if self._left < 0:
                raise TooManyFieldsError
            tag, position = read_varint(data, position, end)
            kind, value, start = tag & 7, 0, position
            if kind == VARINT:
                value, position = read_varint(data, position, end)
            elif kind == BYTES:
                size, start = read_varint(data, position, end)
                position = start + size
            elif kind in (FIXED32, FIXED64):
                position += 4 if kind == FIXED32 else 8
            else:
                raise ValueError("a kind of field that is not in use")
            if position > end:
                raise ValueError("a field that does not end")
            yield Field(tag >> 3, kind, start, position, value)
