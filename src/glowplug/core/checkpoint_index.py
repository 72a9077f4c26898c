"""The index of a TensorFlow checkpoint (`variables.index`): which tensors it stores, without TensorFlow.

The file is a sorted string table: data blocks of prefix-compressed keys, an index block, a 48-byte footer. Values are
`BundleEntryProto` messages. Every length is bounded by the file; what does not fit raises `ValueError`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from glowplug.core.protobuf_wire import BYTES, FIXED32, VARINT, read_varint

_FOOTER_BYTES = 48
_MAGIC = 0xDB4775248B80FB57
_MAXIMUM_BYTES = 256 << 20


class CutOffError(ValueError):
    """The end of the table is not there."""


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """One tensor of a checkpoint: its key, and enough of its value to tell whether two are the same."""

    key: str
    dtype: int
    shape: bytes
    size: int
    crc32c: int
    shard: int = 0
    offset: int = 0

    @property
    def top(self) -> str:
        """The first component of the key: the attribute of the root object."""
        return self.key.partition("/")[0]


def read_index(path: Path) -> list[StoredEntry]:
    """Return the entries of an index file."""
    data = path.read_bytes()
    if len(data) > _MAXIMUM_BYTES:
        raise ValueError(f"{len(data)} bytes are no checkpoint index")
    if len(data) < _FOOTER_BYTES:
        raise CutOffError(f"{len(data)} bytes are no checkpoint index")
    footer = data[-_FOOTER_BYTES:]
    if int.from_bytes(footer[-8:], "little") != _MAGIC:
        raise CutOffError("no table magic")
    _, position = read_varint(footer, 0, len(footer))
    _, position = read_varint(footer, position, len(footer))
    offset, position = read_varint(footer, position, len(footer))
    size, _ = read_varint(footer, position, len(footer))
    entries = []
    for _, handle in _block(data, offset, size):
        block_offset, position = read_varint(handle, 0, len(handle))
        block_size, _ = read_varint(handle, position, len(handle))
        for key, value in _block(data, block_offset, block_size):
            if key:  # the empty key holds the header
                entries.append(_entry(key.decode("utf-8", "replace"), value))
    return entries


def measure_duplicates(entries: list[StoredEntry]) -> tuple[int, int]:
    """Return the bytes of all tensors, and of those stored under more than one attribute of the root object.

    Two tensors of one attribute may be equal by chance (biases of zeros); the same tensors under two are a copy.
    """
    groups: dict[tuple[int, bytes, int, int], Counter[str]] = {}
    for entry in entries:
        signature = (entry.dtype, entry.shape, entry.size, entry.crc32c)
        groups.setdefault(signature, Counter())[entry.top] += 1
    duplicates = sum(
        (sum(counts.values()) - max(counts.values())) * signature[2] for signature, counts in groups.items()
    )
    return sum(entry.size for entry in entries), duplicates


def _block(data: bytes, offset: int, size: int) -> Iterator[tuple[bytes, bytes]]:
    end = offset + size
    if end + 5 > len(data) or size < 4:
        raise ValueError("a block reaches past the end")
    if data[end] != 0:
        raise ValueError("a compressed block")
    restarts = int.from_bytes(data[end - 4 : end], "little")
    limit = end - 4 - 4 * restarts
    if limit < offset:
        raise ValueError("a block with too many restart points")
    position, key = offset, b""
    while position < limit:
        shared, position = read_varint(data, position, len(data))
        fresh, position = read_varint(data, position, len(data))
        length, position = read_varint(data, position, len(data))
        if position + fresh + length > limit or shared > len(key):
            raise ValueError("an entry reaches past its block")
        key = key[:shared] + data[position : position + fresh]
        position += fresh
        yield key, data[position : position + length]
        position += length


def _entry(key: str, value: bytes) -> StoredEntry:
    fields: dict[int, int | bytes] = {}
    position = 0
    while position < len(value):
        tag, position = read_varint(value, position, len(value))
        number, wire = tag >> 3, tag & 7
        if wire == VARINT:
            fields[number], position = read_varint(value, position, len(value))
        elif wire == BYTES:
            length, position = read_varint(value, position, len(value))
            fields[number] = value[position : position + length]
            position += length
        elif wire == FIXED32:
            fields[number] = int.from_bytes(value[position : position + 4], "little")
            position += 4
        else:
            raise ValueError("an entry that is no BundleEntryProto")

    def integer(number: int) -> int:
        found = fields.get(number, 0)
        return found if isinstance(found, int) else 0

    shape = fields.get(2, b"")
    return StoredEntry(
        key,
        integer(1),
        shape if isinstance(shape, bytes) else b"",
        size=integer(5),
        crc32c=integer(6),
        shard=integer(3),
        offset=integer(4),
    )


def shard_sizes(entries: list[StoredEntry]) -> dict[int, int]:
    """Return how many bytes each data file must have at least, by its number."""
    sizes: dict[int, int] = {}
    for entry in entries:
        sizes[entry.shard] = max(sizes.get(entry.shard, 0), entry.offset + entry.size)
    return sizes
