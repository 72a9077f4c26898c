"""Where the node cache and its entries are, as text: the one thing that is asked before anything else is imported."""

from __future__ import annotations

import os

from glowplug.core.disk import cache_files

# Paths are text here, as in `cache_files`: importing pathlib would cost a start.
VARIABLE = "GLOWPLUG_NODE_CACHE_DIR"
ENTRIES, CONTENT = "entries", "content"

_PART = "store"
_DIGITS = 64
_HEXADECIMAL = frozenset("0123456789abcdef")


def root() -> str | None:
    """Return the folder of the node cache, which need not exist; None where this user has no place for one."""
    chosen = os.environ.get(VARIABLE)
    return os.path.abspath(chosen) if chosen else cache_files.location(_PART)


def content_of_pinned(url: str) -> str | None:
    """Return where the files of a pinned URL are, if they were fetched. Nothing has been checked: this is a hint."""
    digest = url.rpartition("@")[2].lower()
    top = root()
    if len(digest) != _DIGITS or not _HEXADECIMAL.issuperset(digest) or top is None:
        return None
    return os.path.join(top, ENTRIES, digest, CONTENT)
