"""The folder where `glowplug run` keeps what it learns from one start for the next: this user's alone.

What is kept is code that a later start runs, so a file or folder that anybody else could have written is not used. A
reader gets a file whole, mapped, or not at all; writers publish by rename. Nothing is synced: a file that a crash left
half written fails its reader's checks and is made again.
"""

from __future__ import annotations

import mmap
import os
import stat
from collections.abc import Iterable

_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
# Paths are strings here: importing pathlib would cost a program that does not use it.


def directory() -> str:
    """Return where the files are kept. It need not exist."""
    chosen = os.environ.get("GLOWPLUG_CACHE_DIR")
    if chosen:
        return os.path.join(chosen, "imports")  # noqa: PTH118
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111
    return os.path.join(home, "glowplug", "imports")  # noqa: PTH118


def open_mapped(name: str) -> mmap.mmap | None:
    """Return a file of this user's, mapped; None where there is none that can be trusted."""
    folder = directory()
    try:
        if not _is_ours(os.stat(folder)):  # noqa: PTH116
            return None
        descriptor = os.open(os.path.join(folder, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)  # noqa: PTH118
    except OSError:
        return None
    try:
        found = os.fstat(descriptor)
        if not _is_ours(found) or not stat.S_ISREG(found.st_mode) or not found.st_size:
            return None
        return mmap.mmap(descriptor, found.st_size, access=mmap.ACCESS_READ)
    except (OSError, ValueError):
        return None
    finally:
        os.close(descriptor)


def write(name: str, pieces: Iterable[bytes | memoryview]) -> bool:
    """Replace a file; say whether that could be done."""
    folder = directory()
    temporary = os.path.join(folder, f".{name}.{os.getpid()}")  # noqa: PTH118
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103
        if not _is_ours(os.stat(folder)):  # noqa: PTH116
            return False
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError:
        return False
    try:
        with os.fdopen(descriptor, "wb") as stream:
            for piece in pieces:
                stream.write(piece)
        os.replace(temporary, os.path.join(folder, name))  # noqa: PTH105, PTH118
    except OSError:
        os.unlink(temporary)  # noqa: PTH108
        return False
    return True


def _is_ours(found: os.stat_result) -> bool:
    return found.st_uid == os.geteuid() and not found.st_mode & _OTHERS_MAY_WRITE
