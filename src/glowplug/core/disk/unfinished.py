"""Files and folders that are being written, under hidden names beside their final ones.

Their writer holds a lock on each, which the kernel releases when the writer ends, however it ends. So what nobody holds
is left over from a writer that was killed, and whoever comes next removes it; process numbers, which containers use
again, say nothing. Where the file system has no locks, a leftover is what has not been touched for a day.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from typing import IO

from .digest import sha256

# Paths are strings here, as in `cache_files`.
PARTIAL = ".glowplug-partial-"
DISPLACED = ".glowplug-displaced-"  # a folder that was there before, while another takes its name

_LONGEST_NAME = 180  # bytes of 255: the rest is for the mark
_FORSAKEN_S = 24 * 3600
_NO_LOCKS = (errno.EBADF, errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


def hidden_name(path: str, mark: str) -> str:
    """Return a hidden path beside `path` that nothing has yet."""
    folder, name = os.path.split(path)
    return os.path.join(folder, f"{_prefix(name, mark)}{os.urandom(8).hex()}")


@contextlib.contextmanager
def new_file(path: str, *, mode: int = 0o666, sync: bool = False) -> Iterator[IO[bytes]]:
    """Yield a hidden file that replaces `path` when the block ends well, and vanishes when it does not."""
    while True:
        temporary = hidden_name(path, PARTIAL)
        descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        if _claim(descriptor, temporary):
            break
        os.close(descriptor)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            if sync:
                os.fsync(descriptor)
            os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def new_folder(path: str) -> tuple[str, int]:
    """Make a hidden empty folder beside `path`; return its path and a descriptor, which locks it until it is closed."""
    while True:
        temporary = hidden_name(path, PARTIAL)
        os.mkdir(temporary, 0o700)
        descriptor = os.open(temporary, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        if _claim(descriptor, temporary):
            return temporary, descriptor
        os.close(descriptor)


def sweep(folder: str, name: str | None = None) -> None:
    """Remove what killed writers left in `folder`: of the file or folder `name`, or of all."""
    for found in leftovers(folder, PARTIAL, name):
        remove(found)


def remove(path: str) -> None:
    """Remove a file, a link or a whole folder, as far as that can be done."""
    if os.path.isdir(path) and not os.path.islink(path):
        import shutil  # here, since every load comes by this module and none removes anything

        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            os.unlink(path)


def leftovers(folder: str, mark: str, name: str | None = None) -> list[str]:
    """Return the hidden files and folders that no living writer holds."""
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    if name is None:
        names = [one for one in names if one.startswith(".") and mark in one]
    else:
        names = [one for one in names if one.startswith(_prefix(name, mark))]
    found = (os.path.join(folder, one) for one in names)
    return [path for path in found if _is_left(path)]


def _prefix(name: str, mark: str) -> str:
    encoded = os.fsencode(name)
    short = name if len(encoded) <= _LONGEST_NAME else sha256(encoded)
    return f".{short}{mark}"


def _claim(descriptor: int, path: str) -> bool:
    """Lock what was just made; say whether it is still there: a sweeper may have come in between."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in _NO_LOCKS
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False


def _is_left(path: str) -> bool:
    try:
        status = os.lstat(path)
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            return False  # no writer makes these
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in _NO_LOCKS and status.st_mtime < time.time() - _FORSAKEN_S
    finally:
        os.close(descriptor)
    return True
