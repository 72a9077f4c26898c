"""Where `glowplug run` keeps what it learns from one start for the next: code that a later start runs."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from glowplug.core.disk import cache_files

if TYPE_CHECKING:
    import mmap

_PART = "imports"


def directory() -> str:
    """Return where the files are kept. It need not exist, and cannot where this user has no place for it."""
    return cache_files.location(_PART) or os.devnull


def open_mapped(name: str) -> mmap.mmap | None:
    """Return a file of this user's, mapped; None where there is none that can be trusted."""
    return cache_files.open_mapped(_PART, name)


def write(name: str, pieces: Iterable[bytes | memoryview]) -> bool:
    """Replace a file; say whether that could be done."""
    return cache_files.write(_PART, name, pieces)
