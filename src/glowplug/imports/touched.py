"""Which ranges of which files this process has touched: what of its mapped libraries is in its page tables.

The kernel's `mincore` tells what is cached, whoever read it; the process's own page tables tell what this start needed.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_PAGE = os.sysconf("SC_PAGE_SIZE")
_PRESENT = 1 << 63
_GAP_BYTES = 32 << 10  # reading on costs less than another request


class FileRanges(NamedTuple):
    """A file as it was, and the ranges of it that were touched, as offset and length."""

    path: str
    modified_ns: int
    size: int
    ranges: tuple[tuple[int, int], ...]


def mapped_files() -> list[FileRanges]:
    """Return what was touched of each shared library that is mapped, in the order of the address space."""
    pages: dict[str, set[int]] = {}
    try:
        with open("/proc/self/maps") as maps, open("/proc/self/pagemap", "rb", buffering=0) as table:  # noqa: PTH123
            for start, end, offset, path in _mappings(maps):
                table.seek(start // _PAGE * 8)
                entries = table.read((end - start) // _PAGE * 8)
                first = offset // _PAGE
                present = pages.setdefault(path, set())
                for index, (entry,) in enumerate(struct.iter_unpack("=Q", entries)):
                    if entry & _PRESENT:
                        present.add(first + index)
    except OSError:
        return []
    return [found for path, present in pages.items() if (found := describe(path, coalesce(present))) is not None]


def describe(path: str, ranges: Iterable[tuple[int, int]] | None = None) -> FileRanges | None:
    """Return a file as it is now with these ranges, or as a whole; None where it cannot be looked at."""
    try:
        found = os.stat(path)  # noqa: PTH116 - before the program; pathlib is not free
    except OSError:
        return None
    return FileRanges(path, found.st_mtime_ns, found.st_size, tuple(ranges or ((0, found.st_size),)))


def coalesce(pages: Iterable[int]) -> list[tuple[int, int]]:
    """Return page numbers as ranges of bytes, with small gaps filled."""
    ranges: list[tuple[int, int]] = []
    for page in sorted(pages):
        offset = page * _PAGE
        if ranges and offset - sum(ranges[-1]) <= _GAP_BYTES:
            ranges[-1] = (ranges[-1][0], offset + _PAGE - ranges[-1][0])
        else:
            ranges.append((offset, _PAGE))
    return ranges


def _mappings(lines: Iterable[str]) -> Iterator[tuple[int, int, int, str]]:
    for line in lines:
        fields = line.rstrip("\n").split(maxsplit=5)
        if len(fields) == 6 and ".so" in fields[5] and fields[5].startswith("/"):
            start, _, end = fields[0].partition("-")
            yield int(start, 16), int(end, 16), int(fields[2], 16), fields[5]
