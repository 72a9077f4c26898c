"""Where the node cache and its entries are, as text: asked before anything else is imported."""

from __future__ import annotations

import os

from glowplug.core.disk import cache_files

# Paths are text here, as in `cache_files`: importing pathlib would cost a start.
VARIABLE = "GLOWPLUG_NODE_CACHE_DIR"
ENTRIES, CONTENT, LEASE, ORIGIN = "entries", "content", "lease", "origin"

_PART = "store"


def root() -> str | None:
    """Return the folder of the node cache, which need not exist; None where this user has no place for one."""
    chosen = os.environ.get(VARIABLE)
    return os.path.abspath(chosen) if chosen else cache_files.location(_PART)
