"""Reads tables of a FlatBuffer that nothing is known about, many at a time, and refuses what leaves it.

All tables of one kind are read together with numpy, so that a model of thousands of tensors is checked in a
millisecond: it happens at every load. Only what is asked for is read. Alignment is demanded as FlatBuffers' own
verifier does.

The layout: a table begins with the signed distance to its vtable, which has its own size, the size of the table, and
for each field its distance from the table's beginning, or zero where it is absent. A vector begins with its length.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from glowplug.core.errors import TfliteMalformedError
from glowplug.core.records import Record

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Positions = NDArray[np.int64]  # byte offsets from the beginning; zero means that there is nothing

_OFFSET_BYTES = 4
_WIDEST_BYTES = 8  # of a number
_MOST_FIELDS = 64
MAX_CONTENT_BYTES = 1 << 16


class Tables:
    """Tables of one kind: where each begins, where its vtable is, and how long both are."""

    __slots__ = ("start", "table_bytes", "vtable", "vtable_bytes")

    def __init__(self, start: Positions, vtable: Positions, vtable_bytes: Positions, table_bytes: Positions) -> None:
        self.start, self.vtable = start, vtable
        self.vtable_bytes, self.table_bytes = vtable_bytes, table_bytes

    def __len__(self) -> int:
        return len(self.start)

    def one(self, place: int) -> Tables:
        """Return one of them, as a set of one."""
        return self.some(slice(place, place + 1))

    def some(self, part: slice | NDArray[np.bool_]) -> Tables:
        """Return those that are chosen."""
        return Tables(self.start[part], self.vtable[part], self.vtable_bytes[part], self.table_bytes[part])


class Vectors(Record):
    """Where the elements of each vector begin, and how many they are; none where the field is absent."""

    start: Positions
    length: Positions


class FlatBuffer:
    """A buffer, and the checked ways to read it."""

    def __init__(self, data: Any) -> None:
        self.size = len(data)
        if self.size < 8:
            refuse("it is too short", f"{self.size} bytes")
        self._bytes = np.frombuffer(data, np.uint8)
        self._shorts = np.frombuffer(data, "<u2", self.size // 2)
        self._words = np.frombuffer(data, "<i4", self.size // 4)

    def root(self) -> Tables:
        """Return the table that the buffer begins with."""
        return self._tables(np.array([self._unsigned(np.zeros(1, np.int64))[0]]))

    def tables(self, owners: Tables, field: int) -> Tables:
        """Return all tables that one field of one owner, a vector of tables, holds."""
        vectors = self.vectors(owners, field, _OFFSET_BYTES)
        entries = self.flat(vectors)
        return self._tables(entries + self._unsigned(entries))

    def linked(self, owners: Tables, field: int) -> tuple[Tables, NDArray[np.bool_]]:
        """Return the tables that owners have in a field, and which owners have one."""
        at = self._field(owners, field, _OFFSET_BYTES)
        there = at > 0
        return self._tables(at[there] + self._unsigned(at[there])), there

    def check_fields(self, tables: Tables) -> None:
        """Check that every field of the tables can be read as a number, whatever it is."""
        if np.count_nonzero(tables.vtable_bytes > 4 + 2 * _MOST_FIELDS):
            refuse("a table has too many fields", f"more than {_MOST_FIELDS}")
        for field in range((int(tables.vtable_bytes.max(initial=4)) - 4) // 2):
            at = self._field(tables, field, 1)
            if np.count_nonzero(at + _WIDEST_BYTES > self.size):
                refuse("a field lies outside its table", f"field {field}")

    def vectors(self, owners: Tables, field: int, element_bytes: int) -> Vectors:
        """Return the vector that each owner has in a field."""
        at = self._field(owners, field, _OFFSET_BYTES)
        there = at > 0
        begin = np.zeros(len(at), np.int64)
        begin[there] = at[there] + self._unsigned(at[there])
        self._demand(begin[there], _OFFSET_BYTES)
        length = np.zeros(len(at), np.int64)
        length[there] = self._unsigned(begin[there])
        start = begin + _OFFSET_BYTES
        if np.count_nonzero(there & (start + length * element_bytes > self.size)):
            refuse("a vector reaches past its end", f"{int(length.max())} elements")
        return Vectors(start, length)

    def flat(self, vectors: Vectors) -> Positions:
        """Return the position of every element of vectors of 32-bit elements, one vector after the other."""
        total = int(vectors.length.sum())
        if total * _OFFSET_BYTES > self.size:
            refuse("vectors overlap", f"{total} elements")
        firsts = np.repeat(vectors.start - _OFFSET_BYTES * (np.cumsum(vectors.length) - vectors.length), vectors.length)
        return firsts + _OFFSET_BYTES * np.arange(total, dtype=np.int64)

    def integers(self, positions: Positions) -> NDArray[np.int64]:
        """Return the signed 32-bit integers that stand at positions of checked vectors."""
        found: NDArray[np.int64] = self._words[positions >> 2].astype(np.int64)
        return found

    def scalars(self, owners: Tables, field: int, width: int, default: int = 0) -> NDArray[np.int64]:
        """Return an unsigned integer field of `width` bytes of each owner; one of 8 bytes must fit in 63 bits."""
        at = self._field(owners, field, width)
        values = np.full(len(at), default, np.int64)
        there = at > 0
        where = at[there]
        if width == 1:
            values[there] = self._bytes[where]
        elif width == 4:
            values[there] = self._unsigned(where)
        else:
            low, high = self._unsigned(where), self._unsigned(where + 4)
            if np.count_nonzero(high >> 31):
                refuse("a number is beyond all bounds", int(high.max()))
            values[there] = low | high << 32
        return values

    def present(self, owners: Tables, field: int) -> NDArray[np.bool_]:
        """Say which owners have a field that is a table or a vector."""
        return self._field(owners, field, _OFFSET_BYTES) > 0

    def content(self, owners: Tables, field: int) -> bytes:
        """Return the bytes that the only owner has in a field; none where it is absent."""
        vectors = self.vectors(owners, field, 1)
        start, length = int(vectors.start[0]), int(vectors.length[0])
        if length > MAX_CONTENT_BYTES:
            refuse("a name is too long", f"{length} bytes")
        return self._bytes[start : start + length].tobytes()

    def text(self, owners: Tables, field: int) -> str:
        """Return the text that the only owner has in a field; an empty one where it is absent."""
        try:
            return self.content(owners, field).decode()
        except UnicodeDecodeError as error:
            refuse("a name is not UTF-8", error)

    def _tables(self, start: Positions) -> Tables:
        self._demand(start, _OFFSET_BYTES)
        vtable = start - self._words[start >> 2]
        if np.count_nonzero((vtable < 0) | (vtable & 1 > 0) | (vtable + 4 > self.size)):
            refuse("a table has no vtable", f"{len(start)} tables")
        vtable_bytes = self._shorts[vtable >> 1].astype(np.int64)
        table_bytes = self._shorts[(vtable >> 1) + 1].astype(np.int64)
        wrong = (vtable_bytes < 4) | (vtable_bytes & 1 > 0) | (vtable + vtable_bytes > self.size)
        if np.count_nonzero(wrong | (table_bytes < 4) | (start + table_bytes > self.size)):
            refuse("a table reaches past its end", f"{len(start)} tables")
        return Tables(start, vtable, vtable_bytes, table_bytes)

    def _field(self, owners: Tables, field: int, width: int) -> Positions:
        """Return where a field of each owner stands, zero where it is absent."""
        entry = 4 + 2 * field
        there = owners.vtable_bytes >= entry + 2
        distance = np.zeros(len(owners), np.int64)
        distance[there] = self._shorts[(owners.vtable[there] + entry) >> 1]
        if np.count_nonzero((distance + width > owners.table_bytes)[distance > 0]):
            refuse("a field lies outside its table", f"field {field}")
        at = np.where(distance > 0, owners.start + distance, 0)
        if width >= 4 and np.count_nonzero(at & 3):
            refuse("a field is not aligned", f"field {field}")
        return at

    def _unsigned(self, positions: Positions) -> NDArray[np.int64]:
        self._demand(positions, 4)
        found: NDArray[np.int64] = self._words[positions >> 2].astype(np.int64) & 0xFFFF_FFFF
        return found

    def _demand(self, positions: Positions, width: int) -> None:
        """Refuse positions that are not aligned or not followed by as many bytes; negative ones are very large here."""
        if len(positions) and (
            int(np.bitwise_or.reduce(positions)) & 3
            or int(np.maximum.reduce(positions.view(np.uint64))) + width > self.size
        ):
            refuse("it points outside itself or is not aligned", f"{self.size} bytes")


def refuse(what: str, seen: object) -> NoReturn:
    """Raise the error of a FlatBuffer that cannot be one."""
    raise TfliteMalformedError(
        f"not a LiteRT model: {what}", seen=seen, remedy="copy the file again; do not use it if that does not help"
    )
