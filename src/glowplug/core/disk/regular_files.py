"""Opens files that others name: ordinary ones only, known to be so before they are opened.

A named pipe would wait for a writer, and a device may act on being opened. So a file is first looked up without being
opened (`O_PATH`), looked at, and only then opened: the same file, whatever its name stands for by then.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_KINDS = {
    stat.S_IFIFO: "a named pipe, not a file",
    stat.S_IFSOCK: "a socket, not a file",
    stat.S_IFCHR: "a device, not a file",
    stat.S_IFBLK: "a device, not a file",
    stat.S_IFDIR: "a folder, not a file",
}
_RENAMES = 3  # of the folder, that may happen just when it is asked where it is


class NotRegularError(OSError):
    """What was named is there, and no ordinary file; `strerror` says what it is."""


class LeavesFolderError(OSError):
    """What was named is a link out of the folder that it should be in; `filename2` is where it leads."""


def open_regular(path: str | Path) -> int:
    """Return a descriptor for reading an ordinary file; raise `OSError`, `NotRegularError` among them, otherwise."""
    found = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        return _open_found(found, str(path))
    finally:
        os.close(found)


def read_regular(path: str | Path, limit: int) -> bytes:
    """Return the content of an ordinary file; raise `OSError` where it is larger than `limit` bytes."""
    with os.fdopen(open_regular(path), "rb") as stream:
        data = stream.read(limit + 1)
    if len(data) > limit:
        raise OSError(errno.EFBIG, f"larger than {limit} bytes", str(path))
    return data


class OpenFolder:
    """A folder that stays the same one, whatever happens to its name. It is closed when nothing refers to it."""

    __slots__ = ("_descriptor",)

    def __init__(self, path: str | Path) -> None:
        self._descriptor = -1
        self._descriptor = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)

    def __del__(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)

    @property
    def path(self) -> str:
        """A path to it for this process, good as long as this object is there."""
        return f"/proc/self/fd/{self._descriptor}"

    def open(self, relative: str) -> int:
        """Return a descriptor of an ordinary file within; links are followed unless they lead out."""
        found = os.open(relative, os.O_PATH | os.O_CLOEXEC, dir_fd=self._descriptor)
        try:
            for _ in range(_RENAMES):
                here, leads_to = _place(self._descriptor), _place(found)
                if leads_to.startswith(f"{here}/"):
                    break
            else:
                raise LeavesFolderError(errno.EXDEV, "a link that leads elsewhere", relative, None, leads_to)
            return _open_found(found, relative)
        finally:
            os.close(found)


def _open_found(found: int, name: str) -> int:
    kind = stat.S_IFMT(os.fstat(found).st_mode)
    if kind != stat.S_IFREG:
        raise NotRegularError(errno.EINVAL, _KINDS.get(kind, "not an ordinary file"), name)
    return os.open(f"/proc/self/fd/{found}", os.O_RDONLY | os.O_CLOEXEC)


def _place(descriptor: int) -> str:
    return os.readlink(f"/proc/self/fd/{descriptor}").removesuffix(" (deleted)")
