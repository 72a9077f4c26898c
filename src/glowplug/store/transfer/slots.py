"""Bounds how many connections this host has to one origin, whatever the number of its processes.

Each connection holds the lock of one of so many files, which the kernel releases with its process. Where there is no
place for such files, or no locks, each process keeps to the bound for itself.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Iterator
from pathlib import Path

from glowplug.core.disk.digest import sha256
from glowplug.store.node_cache.folder import Folder
from glowplug.store.node_cache.locks import Lock, try_exclusive

_LONGEST_S = 600.0  # then whoever holds them all is taken for stuck, and not waited for again


class Slots:
    """The connections to one origin."""

    def __init__(self, folder: Folder, origin: str, count: int) -> None:
        self._files = _files(folder, origin, count)
        self._stuck = False

    @contextlib.contextmanager
    def one(self) -> Iterator[None]:
        """Have one connection during the block."""
        lock = self._take()
        try:
            yield
        finally:
            if lock is not None:
                lock.release()

    def _take(self) -> Lock | None:
        until = time.monotonic() + _LONGEST_S
        while self._files and not self._stuck and time.monotonic() < until:
            for path in random.sample(self._files, len(self._files)):
                try:
                    lock = try_exclusive(path)
                except OSError:
                    return None
                if lock is not None:
                    return lock
            time.sleep(random.uniform(0.002, 0.02))
        self._stuck = True
        return None


def _files(folder: Folder, origin: str, count: int) -> list[Path]:
    if not folder.writable:
        return []
    place = folder.part("slots")
    name = sha256(origin.encode())[:16]
    return [place / f"{name}.{number}" for number in range(count)]
