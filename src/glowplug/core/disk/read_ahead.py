"""Asks the kernel for parts of files before they are needed, on several threads, where they are not in memory yet.

A map reads a page when it is touched and waits for the disk each time. Requests that run ahead of it keep the disk
busy with many at once.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Sequence

THREADS = 4
PIECE_BYTES = 2 << 20  # what the kernel takes in one go
SAMPLES = 64

Piece = tuple[str, int, int]  # a path, an offset, a length


def pieces(path: str, ranges: Iterable[tuple[int, int]]) -> Iterator[Piece]:
    """Cut ranges (offset, length) of a file into pieces that the kernel reads in one go."""
    for at, length in ranges:
        for begin in range(at, at + length, PIECE_BYTES):
            yield path, begin, min(PIECE_BYTES, at + length - begin)


def start(wanted: Sequence[Piece]) -> bool:
    """Begin to read ahead; say no, and do nothing, where a sample of the pieces is in the page cache already."""
    if not wanted or are_cached(wanted[:: len(wanted) // SAMPLES + 1]):
        return False
    queue = iter(wanted)
    lock = threading.Lock()
    for _ in range(min(THREADS, len(wanted))):
        threading.Thread(target=_read_ahead, args=(queue, lock), name="glowplug-prefetch", daemon=True).start()
    return True


def are_cached(samples: Sequence[Piece]) -> bool:
    """Say whether the first byte of each piece can be read without waiting; no, where that cannot be found out."""
    try:
        for path, offset, _ in samples:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                os.preadv(descriptor, [bytearray(1)], offset, os.RWF_NOWAIT)
            finally:
                os.close(descriptor)
    except (OSError, AttributeError):  # BlockingIOError: it is on the disk
        return False
    return True


def _read_ahead(queue: Iterator[Piece], lock: threading.Lock) -> None:
    """Ask the kernel for piece after piece until the queue is empty. Runs on several threads."""
    opened, descriptor = "", -1
    try:
        while True:
            with lock:
                path, offset, length = next(queue, ("", 0, 0))
            if not path:
                return
            if path != opened:
                done, descriptor = descriptor, -1
                if done >= 0:
                    os.close(done)
                opened, descriptor = path, os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            os.posix_fadvise(descriptor, offset, length, os.POSIX_FADV_WILLNEED)
    except OSError:
        return  # whoever needs it reads it then
    finally:
        if descriptor >= 0:
            os.close(descriptor)
