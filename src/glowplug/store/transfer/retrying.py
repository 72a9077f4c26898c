"""Tries again what a storage could not do just now.

Delays double and are drawn at random below their limit, so that hosts which failed together do not come back together.
Where a storage says how long to stay away (`Retry-After`), nobody comes back sooner. What is refused, missing or
damaged is not asked for again.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TypeVar

from glowplug.core.errors import StorageError, UnreachableError
from glowplug.store.backend import Backend, Data, Listed
from glowplug.store.settings import from_environment

FIRST_DELAY_S = 0.2
LONGEST_DELAY_S = 8.0
MOST_LISTED = 1_000_000  # objects: all of them are in memory
LONGEST_WISH_S = 120.0  # of a storage that wants to be left alone: beyond it the caller is told

Result = TypeVar("Result")


class Retrying:
    """A backend that tries again, until it is told to give up. `sleep` is there for tests."""

    def __init__(
        self, backend: Backend, *, retries: int | None = None, sleep: Callable[[float], object] | None = None
    ) -> None:
        self._backend = backend
        self._retries = from_environment().retries if retries is None else retries
        self._given_up = threading.Event()
        self._sleep = sleep or self._given_up.wait

    def give_up(self) -> None:
        """Try nothing again from now on, and end the delays that threads are in: the result is not needed any more."""
        self._given_up.set()

    @property
    def splits(self) -> bool:
        """Whether a part of an object costs less than all of it, as far as is known yet."""
        return bool(getattr(self._backend, "splits", True))

    def size(self, path: str) -> int:
        """Return the length of an object."""
        return self._persist(lambda: self._backend.size(path))

    def read(self, path: str, start: int, end: int) -> Data:
        """Return a range of an object."""
        return self._persist(lambda: self._backend.read(path, start, end))

    def pieces(self, path: str, start: int, end: int, size: int) -> Iterator[Data]:
        """Return a range of an object piece by piece; fewer bytes only where the object ends before.

        Where the storage can, that is one answer, taken as it arrives, and what breaks off is asked for from there.
        Else a piece is an answer of its own, of this size.
        """
        stream = getattr(self._backend, "stream", None)
        return self._reads(path, start, end, size) if stream is None else self._stream(stream, path, start, end)

    def _reads(self, path: str, start: int, end: int, size: int) -> Iterator[Data]:
        while start < end:
            until = min(start + size, end) if self.splits else end
            data = self.read(path, start, until)
            yield data
            start = until if len(data) == until - start else end  # the object has ended

    def _stream(
        self, stream: Callable[[str, int, int], Iterator[Data]], path: str, start: int, end: int
    ) -> Iterator[Data]:
        attempt = 0  # for all of it: a storage that gives a byte an attempt is given up as well
        while start < end:
            try:
                for data in stream(path, start, end):
                    start += len(data)
                    yield data
                return
            except UnreachableError as error:
                self._pause(attempt, error)
                attempt += 1

    def write(self, path: str, data: Data) -> None:
        """Store an object. Doing it twice is the same as once, so it may be tried again too."""
        self._persist(lambda: self._backend.write(path, data))

    def list(self, prefix: str) -> Iterator[Listed]:
        """Return what is below a folder; a listing that breaks off begins anew."""
        return self._listed(self._backend.list, prefix)

    def children(self, prefix: str) -> Iterator[Listed]:
        """Return what lies directly in a folder."""
        return self._listed(self._backend.children, prefix)

    def remove(self, path: str) -> None:
        """Remove an object."""
        self._persist(lambda: self._backend.remove(path))

    def _listed(self, operation: Callable[[str], Iterator[Listed]], prefix: str) -> Iterator[Listed]:
        found = self._persist(lambda: list(islice(operation(prefix), MOST_LISTED + 1)))
        if len(found) > MOST_LISTED:
            raise StorageError(
                "there is too much under this URL to be listed",
                seen=f"more than {MOST_LISTED} objects below {prefix or 'the root'}",
                remedy="name a folder further down",
            )
        return iter(found)

    def _persist(self, operation: Callable[[], Result]) -> Result:
        attempt = 0
        while True:
            try:
                return operation()
            except UnreachableError as error:
                self._pause(attempt, error)
                attempt += 1

    def _pause(self, attempt: int, error: UnreachableError) -> None:
        """Wait before the next attempt, or raise the error of the last one."""
        wish = error.retry_after_s or 0.0
        if attempt >= self._retries or wish > LONGEST_WISH_S or self._given_up.is_set():
            raise error
        self._sleep(wish + delay_s(attempt))


def delay_s(attempt: int) -> float:
    """Return a delay drawn below the limit of this attempt, the first being number 0."""
    return random.uniform(0, min(LONGEST_DELAY_S, FIRST_DELAY_S * 2.0**attempt))
