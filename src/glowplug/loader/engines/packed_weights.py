"""The weights of a LiteRT model as the kernels of this machine read them, kept in a file that processes share.

XNNPACK arranges all weights for its kernels whenever a model is loaded. Kept in a file, this happens once, later loads
take milliseconds, and every process of a host maps the same pages. LiteRT notices neither another model nor a file that
another process is still writing. So a file's name stands for model, processor and release of LiteRT; it is made under a
hidden name by one maker at a time and gets its own name when it is whole; and it is looked at before it is used.

Whether its bytes are those that were made is told without reading them: a mark beside it has their digest, and what the
file system says of the file. Whoever writes to it changes the time of its last change, which nobody can set. Where that
differs, for a changed file or for one that was copied here, the digest decides.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import json
import mmap
import os
import struct
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from glowplug.bundle.tflite.flatbuffer import FlatBuffer
from glowplug.core.disk import cache_files, unfinished
from glowplug.core.disk.digest import sha256, sha256_file
from glowplug.core.errors import TfliteMalformedError
from glowplug.runtime.fingerprint import cpu_features

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = "litert"
_SUFFIX, _MARK, _LOCK = ".weights", ".mark", ".lock"
_WAIT_S = 20.0  # for another process that makes the same file; some models have gigabytes
_LOOK_S = 0.02
_KEPT = 64  # files; the least recently used goes first
_MOST_MARK_BYTES = 1 << 12

# Of XNNPACK's file: its version, where its table of buffers is, and how long that is.
_HEADER = struct.Struct("<QQQ")
_VERSION = 4
_PROCESSOR_LINES = ("vendor_id", "cpu family", "model", "CPU implementer", "CPU part", "CPU variant")

Make = Callable[[str], None]


def machine_key(model_sha256: str, release: str) -> str:
    """Return what stands for a model on this processor under a release of LiteRT."""
    parts = [part.encode() for part in (model_sha256, release, *_processor())]
    return sha256(b"".join(b"%d:" % len(part) + part for part in parts))


def is_whole(path: str) -> bool:
    """Say whether a file is one of packed weights, all of which lie inside it."""
    try:
        with open(path, "rb", buffering=0) as stream:  # noqa: PTH123 - a path through a descriptor as well
            size = os.fstat(stream.fileno()).st_size
            if size < _HEADER.size:
                return False
            mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):
        return False
    version, offset, length = _HEADER.unpack_from(mapped)
    if version != _VERSION or offset + length > size:
        return False
    try:
        table = FlatBuffer(mapped[offset : offset + length])
        root = table.root()
        buffers = table.tables(root, 1)
        base = int(table.scalars(root, 2, 8)[0])
        ends = table.scalars(buffers, 3, 8).astype(float) + table.scalars(buffers, 4, 8)
    except TfliteMalformedError:
        return False
    return base + float(np.max(ends, initial=0)) <= size


def cached(key: str, make: Make) -> tuple[str | None, str]:
    """Return a file of packed weights in this user's cache, made with `make(path)` where there is none.

    Without one, the second part says why: a model works without it.
    """
    folder = cache_files.folder(FOLDER, create=True)
    if folder is None:
        return None, "there is no cache folder for packed weights"
    path = os.path.join(folder, key + _SUFFIX)  # noqa: PTH118 - strings, as `cache_files` has them
    if _usable(path):
        return path, ""
    try:
        with _only_maker(path) as alone:
            if _usable(path):
                return path, ""
            if not alone:
                return None, "another process takes long to pack the weights"
            _forget_old()
            make_file(path, make)
            _leave_mark(path, sha256_file(path))
    except OSError as error:
        return None, f"packed weights cannot be kept ({error.strerror})"
    return (path, "") if _usable(path) else (None, "LiteRT made no packed weights")


def make_file(path: str, make: Make) -> None:
    """Have packed weights made under a hidden name, and give them their own once they are whole."""
    folder, name = os.path.split(path)
    unfinished.sweep(folder, name)
    with unfinished.new_file(path, mode=0o600) as stream:
        make(os.readlink(f"/proc/self/fd/{stream.fileno()}"))  # noqa: PTH115 - LiteRT opens it by name
        if not is_whole(f"/proc/self/fd/{stream.fileno()}"):
            raise OSError(0, "they are not whole")
        os.fchmod(stream.fileno(), 0o400)  # LiteRT writes anew, in place, what it does not like, and others map it


def _usable(path: str) -> bool:
    """Say whether a file is this user's, whole, and what was made; note that it is used."""
    try:
        found = os.lstat(path)
        if found.st_uid != os.geteuid() or not is_whole(path):
            return False
        kept = cache_files.open_mapped(FOLDER, os.path.basename(path) + _MARK)  # noqa: PTH119 - a string
        mark = json.loads(kept[:_MOST_MARK_BYTES] if kept else b"")
        if mark["file"] != _identity(found):
            if mark["sha256"] != sha256_file(path):
                return False
            with contextlib.suppress(OSError):
                _leave_mark(path, mark["sha256"])
    except (OSError, ValueError, KeyError, TypeError):
        return False
    with contextlib.suppress(OSError):
        os.utime(path + _MARK)
    return True


def _leave_mark(path: str, digest: str) -> None:
    with unfinished.new_file(path + _MARK, mode=0o600) as stream:
        stream.write(json.dumps({"sha256": digest, "file": _identity(os.lstat(path))}).encode())


def _identity(found: os.stat_result) -> list[int]:
    return [found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]


@contextlib.contextmanager
def _only_maker(path: str) -> Iterator[bool]:
    """Wait until nobody else makes the file, not for ever; the kernel frees the lock of a maker that dies."""
    descriptor = os.open(path + _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        yield _lock(descriptor, time.monotonic() + _WAIT_S)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, until: float) -> bool:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                return False
            time.sleep(_LOOK_S)
        except OSError:
            return True  # a file system without locks: two makers leave one whole file all the same
        else:
            return True


class Kept(NamedTuple):
    """A file of packed weights. `used_s` counts from the epoch."""

    path: Path
    size: int
    used_s: float

    def remove(self) -> None:
        """Remove it, with what lies beside it. Whoever maps it keeps it."""
        from pathlib import Path

        for suffix in ("", _MARK, _LOCK):
            Path(f"{self.path}{suffix}").unlink(missing_ok=True)


def place() -> str | None:
    """Return the folder of packed weights, if there is one that can be used."""
    return cache_files.folder(FOLDER)


def kept() -> list[Kept]:
    """Return the packed weights of this user's cache, last used first."""
    from pathlib import Path

    folder, found = place(), []
    for path in Path(folder).glob(f"*{_SUFFIX}") if folder is not None else ():
        with contextlib.suppress(OSError):
            found.append(Kept(path, path.lstat().st_size, _last_used(path)))
    return sorted(found, key=lambda one: one.used_s, reverse=True)


def forget(*, max_bytes: int | None = None, older_than_s: float | None = None) -> list[Kept]:
    """Remove what is unused for longer, and the last used beyond `max_bytes`."""
    now, total, removed = time.time(), 0, []
    for one in kept():
        too_old = older_than_s is not None and now - one.used_s > older_than_s
        if too_old or (max_bytes is not None and total + one.size > max_bytes):
            one.remove()
            removed.append(one)
        else:
            total += one.size
    return removed


def _forget_old() -> None:
    """Remove what has not been used for longest, so that one more file has its place."""
    for old in kept()[_KEPT - 1 :]:
        with contextlib.suppress(OSError):
            old.remove()


def _last_used(path: Path) -> float:
    try:
        return os.stat(f"{path}{_MARK}").st_mtime  # noqa: PTH116 - a string, as above
    except OSError:
        return 0.0  # nobody uses it without


@functools.cache
def _processor() -> tuple[str, ...]:
    """Return what XNNPACK may choose its kernels by."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as stream:  # noqa: PTH123
            lines = {" ".join(line.split()) for line in stream if line.startswith(_PROCESSOR_LINES)}
    except OSError:
        lines = set()
    return (*cpu_features(), *sorted(lines))
