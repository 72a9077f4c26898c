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
import zlib
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from time import perf_counter_ns
from types import ModuleType

from glowplug.core.disk import read_ahead

from . import private, touched
from .bytecode import collect
from .ledger import Ledger, seconds
from .touched import FileRanges
from .watch import Watcher

_PART = "prefetch"
_VERSION = 1
_MAX_RECORD_BYTES = 1 << 24
_FRESH_ENOUGH = 0.8  # a record that had this part of what was touched now is kept


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
        began = perf_counter_ns()
        wanted = [piece for one in self._known for piece in read_ahead.pieces(one.path, one.ranges)]
        if not read_ahead.start(wanted):
            self._ledger.add(
                _PART, "everything is in the page cache already", known_bytes=_total(self._known), asked_bytes=0
            )
            return
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
