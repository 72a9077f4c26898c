"""Locks that the kernel releases when their holder ends, however it ends.

Whoever holds a lock has the file's descriptor; closing it gives the lock up. A lock file may be removed by whoever
holds it alone, so a lock counts only if its name still stands for the same file. On a file system without locks
everybody gets one that says so.

A forked process has its parent's descriptors, and with them its locks. What many may hold it keeps, since it has the
maps of its parent too. What one alone may hold it gives up: else a fetch whose process died would wait for its
children, which do not fetch.
"""

from __future__ import annotations

import errno
import fcntl
import functools
import os
import time
import weakref
from dataclasses import dataclass
from pathlib import Path

_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.EBADF)


_alone: weakref.WeakSet[Lock] = weakref.WeakSet()


@dataclass(slots=True, eq=False, weakref_slot=True)
class Lock:
    """A lock that this process has. `real` is false where the file system has no locks."""

    descriptor: int
    real: bool = True

    def release(self) -> None:
        """Give it up. Doing so twice is harmless."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __enter__(self) -> Lock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def try_exclusive(path: Path) -> Lock | None:
    """Return the lock of a file, which is made if need be; None while somebody else has it."""
    lock = _try(path, os.O_RDWR | os.O_CREAT, fcntl.LOCK_EX)
    if lock is not None:
        _watch_forks()
        _alone.add(lock)
    return lock


def try_shared(path: Path) -> Lock | None:
    """Return a lock of a file that many may have at a time; None while somebody has it alone, or it is removed."""
    try:
        return _try(path, os.O_RDONLY, fcntl.LOCK_SH)
    except FileNotFoundError:
        return None


def wait_shared(path: Path, longest_s: float) -> Lock | None:
    """Return a lock that many may have; None where there is no such file, or somebody has it alone for so long."""
    until = time.monotonic() + longest_s
    while True:
        lock = try_shared(path)
        if lock is not None or not path.exists() or time.monotonic() > until:
            return lock
        time.sleep(0.001)


@functools.cache
def _watch_forks() -> None:
    os.register_at_fork(after_in_child=_give_up_in_child)


def _give_up_in_child() -> None:
    for lock in list(_alone):
        lock.release()


def _try(path: Path, flags: int, kind: int) -> Lock | None:
    descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), path.lstat()):
            return Lock(descriptor)
    except BlockingIOError:
        pass
    except FileNotFoundError:
        pass  # removed meanwhile
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return Lock(descriptor, real=False)
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None
