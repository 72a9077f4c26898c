"""What lies under a model's base path: numbered versions, each a bundle or a plain SavedModel.

This is where other kinds of sources plug in: whatever can be turned into a local directory of one of the known kinds.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from glowplug.bundle import layout
from glowplug.loader.savedmodel import FILES

Kind = Literal["bundle", "saved_model"]


@dataclass(frozen=True, slots=True)
class Source:
    """One version on disk. `stamp` changes when its content is replaced."""

    path: Path
    kind: Kind
    stamp: tuple[int, int, int]


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
        try:
            status = (directory / name).stat()
        except OSError:
            continue
        kind: Kind = "bundle" if name == layout.MANIFEST else "saved_model"
        return Source(directory, kind, (status.st_ino, status.st_mtime_ns, status.st_size))
    return None
