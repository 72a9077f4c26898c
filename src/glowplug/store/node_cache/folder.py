"""Where the node cache is, who may use it, and what lies where in it.

    entries/DIGEST/   content/ (the files), tree.json (their description), lease (who uses it), origin, boot, synced
    partial/KEY/      an entry that is being fetched, or was when its process ended
    locks/KEY         held by the one process that fetches
    failed/KEY        why the last one that fetched gave up
    plain/KEY         the digest of what a storage listed so
    slots/            one file for each connection to an origin that this host may have
    trash/            what is being removed

It belongs to one user: what is in it will be mapped and run by whoever finds it. One that belongs to root, and that
nobody else can write to, may be used by all, to read from.
"""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from glowplug.core.errors import DiskFullError, StorageError

from . import place
from .place import VARIABLE as CACHE_DIR

_FULL = (errno.ENOSPC, errno.EDQUOT)
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
_REMEDY = f"set {CACHE_DIR} to a directory of your own"


@dataclass(frozen=True, slots=True)
class Folder:
    """The folder of a node cache that may be used. `writable` is false where it can only be read."""

    root: Path
    writable: bool

    def entry(self, digest: str) -> Path:
        """Return the place of an entry, which need not be there."""
        return self.root / place.ENTRIES / digest

    def part(self, name: str) -> Path:
        """Return the folder of one kind of thing, and make it where that can be done."""
        path = self.root / name
        if self.writable:
            try:
                path.mkdir(mode=0o700, exist_ok=True)
            except OSError as error:
                raise cannot_write(path, error) from error
        return path

    def trash(self) -> Path:
        """Return a path for something that is to be removed."""
        return self.part("trash") / os.urandom(8).hex()


def open_folder(path: Path | None = None) -> Folder:
    """Return the user's node cache, or the one at `path`; it is made where there is none."""
    root = path or _default()
    try:
        if not os.path.lexists(root):
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
        link, status = root.lstat(), root.stat()
    except OSError as error:
        raise cannot_write(root, error) from error
    if not stat.S_ISDIR(status.st_mode):
        raise StorageError("the node cache is no folder", seen=root, remedy=_REMEDY)
    for found in (link, status):  # whoever owns a link decides where it leads
        if found.st_uid not in (os.geteuid(), 0):
            raise StorageError(
                "the node cache belongs to another user", seen=f"{root} (user {found.st_uid})", remedy=_REMEDY
            )
    if status.st_mode & _OTHERS_MAY_WRITE:
        raise StorageError(
            "other users can write to the node cache",
            seen=f"{root} (mode {stat.S_IMODE(status.st_mode):o})",
            remedy=f"chmod go-w {root}" if status.st_uid == os.geteuid() else _REMEDY,
        )
    return Folder(root, os.access(root, os.W_OK | os.X_OK))


def cannot_write(path: Path, error: OSError) -> StorageError:
    """Return what to say where the node cache cannot be written."""
    if error.errno in _FULL:
        return DiskFullError(
            "the disk of the node cache is full",
            seen=f"{path} ({error.strerror})",
            remedy=f"make room there, or set {CACHE_DIR} to a larger disk",
        )
    return StorageError("the node cache cannot be written", seen=f"{path} ({error.strerror})", remedy=_REMEDY)


def _default() -> Path:
    path = place.root()
    if path is None:
        raise StorageError("this user has no place for a node cache", remedy=_REMEDY)
    return Path(path)
