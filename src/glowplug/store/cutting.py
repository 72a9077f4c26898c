"""Where a file is cut into chunks: at the boundaries its owner names, so that a changed part is a changed chunk.

Parts smaller than a chunk are joined, larger ones are cut into equal pieces. A large part always begins a chunk of its
own, so that files which differ before it have the same chunks after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

LARGEST_BYTES = 16 << 20  # of any chunk
_SMALLEST_JOINED, _LARGEST_JOINED = 1 << 20, LARGEST_BYTES // 2
_PARTS = 64  # a file has more chunks than this, so that one changed part is a small share of it

Span = tuple[int, int]


def cut(size: int, boundaries: Iterable[int] = ()) -> list[Span]:
    """Return the chunks of a file of `size` bytes as (start, end); `boundaries` are offsets at which parts begin."""
    joined = joined_bytes(size)
    marks = sorted({0, size, *(at for at in boundaries if 0 < at < size)})
    spans: list[Span] = []
    start = 0
    for begin, end in pairwise(marks):
        if begin > start and end - start > joined:
            spans += _split(start, begin, 2 * joined)
            start = begin
        if end - start >= joined:
            spans += _split(start, end, 2 * joined)
            start = end
    if start < size:
        spans += _split(start, size, 2 * joined)
    return spans


def joined_bytes(size: int) -> int:
    """Return up to which size small parts of a file are joined: a power of two, so that versions of about the same
    size are cut alike."""
    part = max(1, size // _PARTS)
    return max(_SMALLEST_JOINED, min(_LARGEST_JOINED, 1 << part.bit_length() - 1))


def _split(start: int, end: int, largest: int) -> Iterator[Span]:
    """Cut into as few equal pieces as the largest chunk allows."""
    count = -(-(end - start) // largest)
    for number in range(count):
        yield start + (end - start) * number // count, start + (end - start) * (number + 1) // count
