"""Another path of a folder whose own TensorFlow does not find: it takes a checkpoint's for a pattern of names."""

from __future__ import annotations

import os
from pathlib import Path

_PATTERN = frozenset("*?[\\")


def open_plainly(folder: Path) -> tuple[Path, int | None]:
    """Return a path without a pattern, and the descriptor to close when that is no longer needed, if there is one."""
    if not _PATTERN.intersection(str(folder)) or not folder.is_dir():
        return folder, None
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    return Path(f"/proc/self/fd/{descriptor}"), descriptor
