"""The bytecode of many modules in one file, in the order in which a start needs it.

Layout: `MAGIC`, the checksum and length of the index, the index, then the pieces. The index is a marshalled tuple: the
identity of the interpreter, the folders with their modification times, and one row a module. A piece is the
marshalled code of one module, as in its `.pyc`, with a checksum of its own: `marshal` trusts what it reads, so no
damaged byte may reach it. A row is good as long as its source file has the size and the times it had, which is more
than Python asks of a `.pyc`.
"""

from __future__ import annotations

import marshal
import mmap
import os
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from types import CodeType
from typing import Any, NamedTuple

from glowplug.imports import private

MAGIC = b"GLOWCODE\x02"
_HEADER = struct.Struct("<9sIQ")
_MAX_INDEX_BYTES = 1 << 26


class Row(NamedTuple):
    """A module: where its source is, what that file looked like, and which bytes of the archive are its code.

    An extension module has no code (`length` 0); its source is the shared library. `early` modules belong to the import
    of TensorFlow itself; others were loaded later by one program or another. One that `changes` settings of the process
    cannot be put off. `changed_ns` is the file's own time, which nobody can set.
    """

    name: str
    path: str
    is_package: bool
    modified_ns: int
    changed_ns: int
    size: int
    early: bool
    changes: bool
    offset: int
    length: int
    checksum: int


class Archive:
    """An opened archive."""

    def __init__(self, data: mmap.mmap, start: int, folders: dict[str, int], rows: dict[str, tuple[Any, ...]]) -> None:
        self._data = memoryview(data)
        self._start = start
        self._rows = rows
        self.folders = folders

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return (Row(*row) for row in self._rows.values())

    def row(self, name: str) -> Row | None:
        """Return the row of a module, None where the archive lacks it."""
        found = self._rows.get(name)
        return None if found is None else Row(*found)

    def piece(self, row: Row) -> memoryview | None:
        """Return a module's bytes, None where they are damaged."""
        begin = self._start + row.offset
        piece = self._data[begin : begin + row.length]
        return piece if len(piece) == row.length and zlib.crc32(piece) == row.checksum else None

    def code(self, row: Row) -> CodeType | None:
        """Return a module's code, None where it is damaged."""
        piece = self.piece(row)
        if piece is None:
            return None
        code = marshal.loads(piece)
        return code if isinstance(code, CodeType) else None


def is_unchanged(row: Row) -> bool:
    """Say whether the source of a module is the file that it was."""
    try:
        found = os.stat(row.path)  # noqa: PTH116 - thousands of them
    except OSError:
        return False
    return (found.st_mtime_ns, found.st_ctime_ns, found.st_size) == (row.modified_ns, row.changed_ns, row.size)


def read(name: str, identity: Sequence[str]) -> Archive | None:
    """Open an archive that was written for this identity; None where there is none, or it is damaged."""
    data = private.open_mapped(name)
    if data is None or len(data) < _HEADER.size:
        return None
    magic, checksum, length = _HEADER.unpack_from(data)
    index = data[_HEADER.size : _HEADER.size + min(length, _MAX_INDEX_BYTES)]
    if magic != MAGIC or len(index) != length or zlib.crc32(index) != checksum:
        return None
    found, folders, rows = marshal.loads(index)
    if found != tuple(identity):
        return None
    return Archive(data, _HEADER.size + length, folders, rows)


def write(
    name: str, identity: Sequence[str], folders: Mapping[str, int], modules: Sequence[tuple[Row, bytes | memoryview]]
) -> bool:
    """Write an archive; the rows' places and checksums are filled in here."""
    rows: dict[str, tuple[Any, ...]] = {}
    offset = 0
    for row, piece in modules:
        rows[row.name] = tuple(row._replace(offset=offset, length=len(piece), checksum=zlib.crc32(piece)))
        offset += len(piece)
    index = marshal.dumps((tuple(identity), dict(folders), rows))

    def pieces() -> Iterator[bytes | memoryview]:
        yield _HEADER.pack(MAGIC, zlib.crc32(index), len(index))
        yield index
        for _, piece in modules:
            yield piece

    return private.write(name, pieces())
