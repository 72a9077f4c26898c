"""What lies under a model's base path: numbered versions, each a bundle or a plain SavedModel.

This is where other kinds of sources plug in: whatever can be turned into a local directory of one of the known kinds.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from glowplug.bundle import layout
from glowplug.loader.savedmodel import FILES

Kind = Literal["bundle", "saved_model"]

_MAX_FILES = 100_000
_MAX_DEPTH = 16  # links to folders are followed, and may lead in circles


@dataclass(frozen=True, slots=True)
class Source:
    """One version on disk. `stamp` changes with any of its files; `changed_ns` is when the last of them changed."""

    path: Path
    kind: Kind
    stamp: str = ""
    changed_ns: int = 0

    def age_s(self) -> float:
        """How long ago a file of it changed, by the clock of its file system."""
        return (time.time_ns() - self.changed_ns) / 1e9


def find_versions(base: Path) -> dict[int, Source]:
    """Return the versions under a base path. A path that is itself a model is its version 1."""
    single = identify(base)
    if single is not None:
        return {1: single}
    found = dict[int, Source]()
    try:
        entries = list(base.iterdir())
    except OSError:
        return {}
    for entry in entries:
        if entry.name.isascii() and entry.name.isdigit() and len(entry.name) < 19:
            source = identify(entry)
            if source is not None:
                found[int(entry.name)] = source
    return found


def identify(directory: Path) -> Source | None:
    """Say what a directory holds, or `None` where it is no model (yet)."""
    for name in (layout.MANIFEST, *FILES):
        if (directory / name).is_file():
            kind: Kind = "bundle" if name == layout.MANIFEST else "saved_model"
            return _stamped(directory, kind)
    return None


def _stamped(directory: Path, kind: Kind) -> Source:
    """Look at every file: new weights may come under an unchanged graph.

    The time of the last change of an inode is part of it, since no copying tool can set it back.
    """
    whole, changed_ns = hashlib.sha256(), 0
    for name, status in sorted(_files(str(directory), "", 0)):
        row = (name, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        whole.update(repr(row).encode("utf-8", "surrogateescape"))
        changed_ns = max(changed_ns, status.st_ctime_ns)
    return Source(directory, kind, whole.hexdigest(), changed_ns)


def _files(folder: str, prefix: str, depth: int) -> Iterator[tuple[str, os.stat_result]]:
    count = 0
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        count += 1
        if count > _MAX_FILES:
            return
        try:
            if not entry.is_dir():
                yield prefix + entry.name, entry.stat()
            elif depth < _MAX_DEPTH:
                yield from _files(entry.path, f"{prefix}{entry.name}/", depth + 1)
        except OSError:  # it went away meanwhile, which the next look will show
            continue
