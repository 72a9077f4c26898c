"""What lies under a model's base path: numbered versions, each a bundle, a plain SavedModel or a LiteRT model.

What lies elsewhere becomes a local directory first: `mirror`.
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
from glowplug.loader.engines.savedmodel import FILES

Kind = Literal["bundle", "saved_model", "tflite"]

_MAX_FILES = 100_000
_MAX_VERSION, _MAX_DIGITS = (1 << 63) - 1, 64
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


def find_versions(base: Path, *, prefer_tflite: bool = False) -> dict[int, Source]:
    """Return the versions under a base path. A path that is itself a model is its version 1."""
    single = identify(base, prefer_tflite=prefer_tflite)
    if single is not None:
        return {1: single}
    found = dict[int, Source]()
    try:
        entries = sorted(base.iterdir())  # of `1` and `01` always the same is served
    except OSError:
        return {}
    for entry in entries:
        number = version_number(entry.name)
        source = None if number is None else identify(entry, prefer_tflite=prefer_tflite)
        if number is not None and source is not None:
            found[number] = source
    return found


def why_no_versions(base: Path) -> str:
    """Say why there are no versions under a base path, without the path: clients see it."""
    try:
        with os.scandir(base):
            return "there is no version of the model yet"
    except FileNotFoundError:
        return "the base path is not there yet"
    except OSError as error:
        return f"the base path cannot be read ({error.strerror})"


def version_number(name: str) -> int | None:
    """Return the version that a folder of this name is, if it is one."""
    if not (name.isascii() and name.isdigit()) or len(name) > _MAX_DIGITS:
        return None
    number = int(name)
    return number if number <= _MAX_VERSION else None


def identify(directory: Path, *, prefer_tflite: bool = False) -> Source | None:
    """Say what a directory holds, or `None` where it is no model (yet).

    Where there is both a SavedModel and a LiteRT model, the caller may prefer the latter.
    """
    plain: tuple[tuple[str, Kind], ...] = tuple((name, "saved_model") for name in FILES)
    lite: tuple[tuple[str, Kind], ...] = ((layout.TFLITE, "tflite"),)
    bundle: tuple[tuple[str, Kind], ...] = ((layout.MANIFEST, "bundle"),)
    for name, kind in bundle + (lite + plain if prefer_tflite else plain + lite):
        if (directory / name).is_file():
            return _stamped(directory, kind)
    return None


def is_unchanged(source: Source) -> bool:
    """Say whether the files of a version are still the ones that were seen."""
    return identify(source.path, prefer_tflite=source.kind == "tflite") == source


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
