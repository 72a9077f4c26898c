"""Which pages of memory a child touches first, and how a child that waits gets them ready.

A forked process owns no page: it copies each one when it first writes to it, and maps those of the libraries again. For
a first layer of Keras that is half of the time. So a standby has one child try it out, asks the kernel which pages that
took (/proc/self/pagemap), and lets the children that wait for a request touch the same pages beforehand.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from array import array
from collections.abc import Iterable, Iterator
from itertools import groupby

_POPULATE_READ, _POPULATE_WRITE = 22, 23  # madvise, since Linux 5.14
_PRESENT, _OF_A_FILE, _EXCLUSIVE = 1 << 63, 1 << 61, 1 << 56
_ENTRY = 8

Ranges = list[tuple[int, int]]


def mappings() -> list[tuple[int, int, bool]]:
    """Return start, end and whether it is private memory for each mapping of this process that counts."""
    found = []
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as stream:
        for line in stream:
            addresses, permissions, _, _, _, *name = line.split(None, 5)
            start, _, end = addresses.partition("-")
            of_a_file = bool(name) and name[0].startswith("/")
            if permissions == "rw-p" and not (name and name[0].startswith("[v")):
                found.append((int(start, 16), int(end, 16), True))
            elif permissions in ("r--p", "r-xp") and of_a_file:
                found.append((int(start, 16), int(end, 16), False))
    return found


def touched(places: Iterable[tuple[int, int, bool]]) -> tuple[Ranges, Ranges]:
    """Return the address ranges, among `places`, of files' pages that are mapped and of pages that were copied."""
    read: Ranges = []
    written: Ranges = []
    with open("/proc/self/pagemap", "rb", buffering=0) as stream:
        for start, end, private in places:
            entries = array("Q")
            entries.frombytes(
                os.pread(stream.fileno(), (end - start) // mmap.PAGESIZE * _ENTRY, start // mmap.PAGESIZE * _ENTRY)
            )
            mask, wanted = (
                (_PRESENT | _OF_A_FILE | _EXCLUSIVE, _PRESENT | _EXCLUSIVE) if private else (_PRESENT, _PRESENT)
            )
            (written if private else read).extend(_runs(start, (entry & mask == wanted for entry in entries)))
    return read, written


def prepare(read: Ranges, written: Ranges) -> None:
    """Map and copy these ranges now. What has changed since, or an old kernel, is no matter: it is done when needed."""
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for ranges, how in ((read, _POPULATE_READ), (written, _POPULATE_WRITE)):
        for start, end in ranges:
            advise(start, end - start, how)


def _runs(start: int, pages: Iterable[bool]) -> Iterator[tuple[int, int]]:
    at = start
    for wanted, group in groupby(pages):
        size = sum(1 for _ in group) * mmap.PAGESIZE
        if wanted:
            yield at, at + size
        at += size
