"""Files: this machine's, and whatever is mounted (CephFS, NFS, a FUSE mount)."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from glowplug.core.disk import refusals, unfinished
from glowplug.core.disk.regular_files import open_regular
from glowplug.core.errors import AccessError, DiskFullError, ObjectNotFoundError, StorageError, UnreachableError
from glowplug.store.backend import Data, Listed

_FULL = (errno.ENOSPC, errno.EDQUOT)
_MISSING = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR)
_NOT_NOW = (errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EHOSTDOWN, errno.ENOTCONN, errno.EAGAIN, errno.EINTR)


def connect(root: str) -> LocalBackend:
    """Return the backend of this machine's files."""
    return LocalBackend(Path("/"))


class LocalBackend:
    """The four operations on files below a folder."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def size(self, path: str) -> int:
        """Return the length of an ordinary file."""
        place = self._root / path
        try:
            status = place.stat()
        except OSError as error:
            raise _explained(error, place) from error
        if not stat.S_ISREG(status.st_mode):
            raise ObjectNotFoundError("there is no such file", seen=f"{place} (it is no ordinary file)")
        return status.st_size

    def read(self, path: str, start: int, end: int) -> Data:
        """Return a range of an ordinary file."""
        place = self._root / path
        try:
            descriptor = open_regular(place)
            try:
                pieces = []
                while start < end and (piece := os.pread(descriptor, end - start, start)):
                    pieces.append(piece)
                    start += len(piece)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise _explained(error, place) from error
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def write(self, path: str, data: Data) -> None:
        """Store a file through a hidden one beside it."""
        place = self._root / path
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            with unfinished.new_file(str(place), sync=True) as stream:
                stream.write(data)
        except OSError as error:
            raise _explained(error, place) from error

    def list(self, prefix: str) -> Iterator[Listed]:
        """Return the ordinary files below a folder; links to files are followed, links to folders are not."""
        top = self._root / prefix
        if top.is_file():
            yield self._listed(top)

        def refuse(error: OSError) -> None:
            if error.errno not in _MISSING:
                raise _explained(error, top) from error

        for folder, folders, names in os.walk(top, onerror=refuse):
            folders.sort()
            for name in sorted(names):
                place = Path(folder, name)
                if unfinished.PARTIAL not in name and place.is_file():
                    yield self._listed(place)

    def children(self, prefix: str) -> Iterator[Listed]:
        """Return what lies directly in a folder."""
        top = self._root / prefix
        try:
            places = sorted(top.iterdir())
        except OSError as error:
            if error.errno in _MISSING:
                return
            raise _explained(error, top) from error
        for place in places:
            if place.is_dir():
                yield Listed(place.relative_to(self._root).as_posix(), 0, "", is_folder=True)
            elif unfinished.PARTIAL not in place.name and place.is_file():
                yield self._listed(place)

    def remove(self, path: str) -> None:
        """Remove a file."""
        try:
            (self._root / path).unlink(missing_ok=True)
        except OSError as error:
            raise _explained(error, self._root / path) from error

    def _listed(self, place: Path) -> Listed:
        try:
            status = place.stat()
        except OSError as error:
            raise _explained(error, place) from error
        tag = f"{status.st_mtime_ns}-{status.st_ctime_ns}-{status.st_ino}"
        return Listed(place.relative_to(self._root).as_posix(), status.st_size, tag, status.st_mtime)


def _explained(error: OSError, place: Path) -> StorageError:
    seen = f"{place} ({error.strerror})"
    if error.errno in _MISSING:
        return ObjectNotFoundError("there is no such file", seen=seen)
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return AccessError("this user may not do that here", seen=seen, remedy="change the permissions, or the place")
    if error.errno in _FULL:
        return DiskFullError("the disk is full", seen=seen, remedy="make room there")
    if error.errno in _NOT_NOW:
        return UnreachableError("the file system does not answer", seen=seen, remedy="look at the mount")
    return StorageError("the file system refuses this", seen=seen, remedy=refusals.remedy(error))
