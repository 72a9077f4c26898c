"""What Glowplug keeps for a user from one run to the next: one folder, and one rule for what may be used in it.

Much of it is code or decides which code runs, so a folder or file counts only if this user owns it and nobody else can
write to it. Whatever is wrong, the caller gets nothing and goes on without: a cache never makes a program fail. A
reader gets a file whole, mapped, or not at all; writers publish by rename. Nothing is synced: what a crash left half
written fails its reader's checks and is made again.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import mmap

# Paths are strings here: importing pathlib would cost a program that does not use it.
VARIABLE = "GLOWPLUG_CACHE_DIR"

_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
_told: set[str] = set()


def location(part: str) -> str | None:
    """Return the folder of one part of Glowplug, which need not exist; None where this user has no place for it."""
    base = os.environ.get(VARIABLE)
    if base:
        return os.path.join(os.path.abspath(base), part)
    home = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(home):  # the specification has a relative one ignored
        home = os.path.expanduser("~/.cache")  # it stays as it is where there is no home
    return os.path.join(home, "glowplug", part) if os.path.isabs(home) else None


def folder(part: str, *, create: bool = False) -> str | None:
    """Return the folder of one part if it can be used; one that belongs to others is passed by, with one line."""
    path = location(part)
    if path is None:
        return None
    try:
        if create:
            os.makedirs(path, mode=0o700, exist_ok=True)
        reason = distrust(path)
    except OSError:
        return None
    if not reason:
        return path
    if path not in _told:
        _told.add(path)
        print(f"glowplug: the cache folder {path} {reason}, so it is not used", file=sys.stderr)
    return None


def distrust(path: str, *, others_may: int = _OTHERS_MAY_WRITE) -> str:
    """Return why a folder must not be used, or nothing; raise `OSError` where there is none."""
    link = os.lstat(path)
    if link.st_uid not in (os.geteuid(), 0):  # a link is followed if it is ours: caches are moved to larger disks
        return f"belongs to user {link.st_uid}"
    found = os.stat(path)
    if not stat.S_ISDIR(found.st_mode):
        return "is no folder"
    if found.st_uid != os.geteuid():
        return f"belongs to user {found.st_uid}"
    if found.st_mode & others_may:
        return f"is open to other users (mode {stat.S_IMODE(found.st_mode):o})"
    return ""


def open_mapped(part: str, name: str) -> mmap.mmap | None:
    """Return a file of this user's, mapped; None where there is none that can be trusted."""
    import mmap

    place = folder(part)
    if place is None:
        return None
    try:
        descriptor = os.open(f"{place}/{name}", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        found = os.fstat(descriptor)
        ours = found.st_uid == os.geteuid() and not found.st_mode & _OTHERS_MAY_WRITE
        if not ours or not stat.S_ISREG(found.st_mode) or not found.st_size:
            return None
        return mmap.mmap(descriptor, found.st_size, access=mmap.ACCESS_READ)
    except (OSError, ValueError):
        return None
    finally:
        os.close(descriptor)


def write(part: str, name: str, pieces: Iterable[bytes | memoryview]) -> bool:
    """Replace a file; say whether that could be done."""
    from .unfinished import new_file, sweep

    place = folder(part, create=True)
    if place is None:
        return False
    try:
        sweep(place)
        with new_file(f"{place}/{name}", mode=0o600) as stream:
            for piece in pieces:
                stream.write(piece)
    except OSError:
        return False
    return True
