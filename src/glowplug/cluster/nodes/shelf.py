"""Chunks that a node has ready for others in Ray's object store, the last asked for, up to so many bytes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from concurrent.futures import Future
from typing import Any


class Shelf:
    """References by chunk. What falls off is freed by Ray once nobody uses it, and is read again when it is asked for.

    A chunk that is being read is read once, however many ask for it. Safe from any thread.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes, self._bytes = max_bytes, 0
        self._kept: OrderedDict[str, tuple[Any, int]] = OrderedDict()
        self._coming: dict[str, Future[Any]] = {}
        self._lock = threading.Lock()

    def claim(self, chunk: str) -> tuple[Future[Any], bool]:
        """Return the future reference of a chunk, and whether the caller is the one who has to bring it."""
        with self._lock:
            kept = self._kept.get(chunk)
            if kept is not None:
                self._kept.move_to_end(chunk)
                done: Future[Any] = Future()
                done.set_result(kept[0])
                return done, False
            coming = self._coming.get(chunk)
            if coming is not None:
                return coming, False
            self._coming[chunk] = coming = Future()
            return coming, True

    def kept(self, chunk: str) -> Any | None:
        """Return the reference of a chunk that is ready, or nothing."""
        with self._lock:
            found = self._kept.get(chunk)
        return None if found is None else found[0]

    def put(self, chunk: str, reference: Any, size: int) -> None:
        """Bring a chunk that was claimed."""
        with self._lock:
            coming = self._coming.pop(chunk)
            self._kept[chunk] = (reference, size)
            self._bytes += size
            while self._bytes > self._max_bytes and len(self._kept) > 1:
                _, (_, dropped) = self._kept.popitem(last=False)
                self._bytes -= dropped
        coming.set_result(reference)

    def fail(self, chunk: str, error: BaseException) -> None:
        """Say that a chunk that was claimed cannot be had. The next one who asks tries again."""
        with self._lock:
            coming = self._coming.pop(chunk)
        coming.set_exception(error)

    def clear(self) -> None:
        """Give up everything that is kept."""
        with self._lock:
            self._kept.clear()
            self._bytes = 0
