"""Which modules a file in a directory would be found before. Runs in the standby and in its children."""

from __future__ import annotations

import os
from collections.abc import Container


def hiding(directory: str, *known: Container[str]) -> set[str]:
    """Return the top-level modules of those known that a file or package in `directory` would be found before."""
    try:
        entries = os.listdir(directory)
    except OSError:
        return set()
    return {
        name
        for entry in entries
        if any((name := entry.partition(".")[0]) in names for names in known) and _is_module(directory, entry)
    }


def _is_module(directory: str, entry: str) -> bool:
    """Tell whether the import system would stop at this entry; it passes by folders without an __init__.py."""
    if "." in entry:
        return entry.endswith((".py", ".pyc", ".so"))
    return os.path.isfile(os.path.join(directory, entry, "__init__.py"))
