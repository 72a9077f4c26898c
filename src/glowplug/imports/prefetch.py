"""Reads ahead, at the beginning of a start, what the last one touched of TensorFlow's files.

The libraries are huge, and a start touches them here and there; on a cold page cache each touch waits for the disk.
The record of one start lets the next ask for these ranges in order, on several threads, while it goes on.
A file that has changed is left out, and where samples are cached already nothing is asked for: the threads would only
take turns with the program.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import zlib
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec
from time import perf_counter_ns
from types import ModuleType

from . import collect, private, touched
from .ledger import Ledger, seconds
from .touched import FileRanges
from .watch import Watcher

_PART = "prefetch"
_VERSION = 1
_THREADS = 4
_PIECE_BYTES = 2 << 20  # what the kernel takes in one go
_MAX_RECORD_BYTES = 1 << 24
_FRESH_ENOUGH = 0.8  # a record that had this part of what was touched now is kept
_SAMPLES = 64


class Prefetch:
    """The prefetch of one process."""

    def __init__(self, watcher: Watcher, ledger: Ledger) -> None:
        self._ledger = ledger
        self._known: list[FileRanges] = []
        self._began = False
        watcher.watch("tensorflow", before=self._begin, after=self._end)

    def finish(self) -> None:
        """Keep what this start has touched, if it is much more than was known. For the end of the program."""
        if self._began:
            self._keep()

    def _end(self, module: ModuleType | None) -> None:
        if module is not None and not self._has_archive():
            self._known = []
            self._keep()  # now: a service that is ended by a signal never comes to the end of the program

    def _has_archive(self) -> bool:
        """Say whether the record knows the archive of bytecode that is there by now."""
        code = touched.describe(_archive_path())
        return bool(self._known) and (code is None or code.path in {one.path for one in self._known})

    def _keep(self) -> None:
        files = _files_of_this_start()
        total = _total(files)
        if _total(self._known) < _FRESH_ENOUGH * total and write_record(files):
            self._known = files
            self._ledger.add(_PART, f"recorded {total / 1e6:.0f} MB in {len(files)} files for the next start")

    def _begin(self, spec: ModuleSpec) -> None:
        self._began = True
        self._known = read_record()
        if not self._known:
            self._ledger.add(_PART, "no record of an earlier start yet")
            return
        pieces = list(_pieces(self._known))
        if _are_cached(pieces[:: len(pieces) // _SAMPLES + 1]):
            self._ledger.add(
                _PART, "everything is in the page cache already", known_bytes=_total(self._known), asked_bytes=0
            )
            return
        queue = iter(pieces)
        lock = threading.Lock()
        began = perf_counter_ns()
        threads = [
            threading.Thread(target=_read_ahead, args=(queue, lock), name="glowplug-prefetch", daemon=True)
            for _ in range(_THREADS)
        ]
        for thread in threads:
            thread.start()
        took = perf_counter_ns() - began
        self._ledger.add(
            _PART,
            f"asked for {_total(self._known) / 1e6:.0f} MB of {len(self._known)} files ahead in {seconds(took)}",
            known_bytes=_total(self._known),
            asked_bytes=_total(self._known),
        )


def record_name() -> str:
    """Return the name of this environment's record."""
    return f"{zlib.crc32(repr(collect.identity()).encode()):08x}.touched"


def read_record() -> list[FileRanges]:
    """Return what the last start touched, without files that have changed; empty where there is no sound record."""
    data = private.open_mapped(record_name())
    if data is None or len(data) > _MAX_RECORD_BYTES:
        return []
    try:
        document = json.loads(data[:])
        if document["version"] != _VERSION:
            return []
        files = [
            FileRanges(str(path), int(modified_ns), int(size), tuple((int(at), int(length)) for at, length in ranges))
            for path, modified_ns, size, ranges in document["files"]
        ]
    except (ValueError, TypeError, KeyError):
        return []
    return [one for one in files if _is_sound(one)]


def write_record(files: Sequence[FileRanges]) -> bool:
    """Keep a record; say whether that could be done."""
    return private.write(record_name(), [json.dumps({"version": _VERSION, "files": files}).encode()])


def _is_sound(one: FileRanges) -> bool:
    try:
        found = os.stat(one.path)  # noqa: PTH116 - pathlib is not free
    except OSError:
        return False
    unchanged = found.st_mtime_ns == one.modified_ns and found.st_size == one.size
    return unchanged and all(at >= 0 and 0 < length <= one.size for at, length in one.ranges)


def _files_of_this_start() -> list[FileRanges]:
    """Return the archive of bytecode, or single files where there is none, then the libraries."""
    code = touched.describe(_archive_path())
    if code is not None:
        return [code, *touched.mapped_files()]
    cached = (getattr(getattr(module, "__spec__", None), "cached", None) for module in list(sys.modules.values()))
    found = (touched.describe(path) for path in cached if path)
    return [*(one for one in found if one is not None and one.size), *touched.mapped_files()]


def _archive_path() -> str:
    return os.path.join(private.directory(), collect.archive_name())  # noqa: PTH118


def _total(files: Sequence[FileRanges]) -> int:
    return sum(length for one in files for _, length in one.ranges)


def _pieces(files: Sequence[FileRanges]) -> Iterator[tuple[str, int, int]]:
    for one in files:
        for at, length in one.ranges:
            for begin in range(at, at + length, _PIECE_BYTES):
                yield one.path, begin, min(_PIECE_BYTES, at + length - begin)


def _are_cached(samples: Sequence[tuple[str, int, int]]) -> bool:
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


def _read_ahead(queue: Iterator[tuple[str, int, int]], lock: threading.Lock) -> None:
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
        return  # the start reads what it needs itself
    finally:
        if descriptor >= 0:
            os.close(descriptor)
