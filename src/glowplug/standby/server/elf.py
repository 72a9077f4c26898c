"""Finds a function in a loaded library that the library keeps to itself, by the name in its symbol table."""

from __future__ import annotations

import mmap
import struct

_SYMTAB = 2
_FUNCTION = 2
_ENTRY_BYTES = 24
_SECTION = struct.Struct("<IIQQQQIIQQ")


def addresses(path: str, names: list[str]) -> dict[str, int]:
    """Return where the functions of these names are in this process; a stripped library has none of them."""
    base = _base(path)
    if base is None:
        return {}
    with open(path, "rb") as stream, mmap.mmap(stream.fileno(), 0, prot=mmap.PROT_READ) as data:
        if data[:6] != b"\x7fELF\x02\x01":
            return {}
        return {name: base + value for name in names if (value := _find(data, name.encode())) is not None}


def _find(data: mmap.mmap, name: bytes) -> int | None:
    sections = _sections(data)
    for _, kind, _, _, offset, size, link, *_ in sections:
        if kind != _SYMTAB:
            continue
        strings, length = sections[link][4], sections[link][5]
        at = data.find(b"\0" + name + b"\0", strings, strings + length)
        if at < 0:
            return None
        return _value(data, offset, size, at + 1 - strings)
    return None


def _value(data: mmap.mmap, offset: int, size: int, string: int) -> int | None:
    wanted, place, end = struct.pack("<I", string), offset, offset + size
    while (place := data.find(wanted, place, end)) >= 0:
        if (place - offset) % _ENTRY_BYTES == 0:
            info, value = data[place + 4], struct.unpack_from("<Q", data, place + 8)[0]
            return int(value) if info & 0xF == _FUNCTION and value else None
        place += 1
    return None


def _sections(data: mmap.mmap) -> list[tuple[int, ...]]:
    (start,) = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    return [_SECTION.unpack_from(data, start + index * size) for index in range(count)]


def _base(path: str) -> int | None:
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as stream:
        for line in stream:
            fields = line.rstrip("\n").split(None, 5)
            if len(fields) == 6 and fields[5] == path and int(fields[2], 16) == 0:
                return int(fields[0].partition("-")[0], 16)
    return None
