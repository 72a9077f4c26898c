"""Where entries are kept: a small interface, a directory that only its owner can touch, and memory.

An entry is code that will run in this process. So a directory is used only if this user owns it and nobody
else can write to it or read it, and the same is asked of each file. One that is only read, because it is root's or
without any right to write, as in a container image, others may read as well. Nothing here knows what an entry contains.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from glowplug.core.disk import cache_files, files, unfinished
from glowplug.core.errors import StorageError

_SUFFIX = ".trace"
COUNTS_SUFFIX = ".restores"  # of a small file beside an entry, which goes with it


@dataclass(frozen=True, slots=True)
class Item:
    """One kept entry. Times are seconds since the epoch."""

    name: str
    size: int
    created_s: float
    used_s: float


class EntryStore(Protocol):
    """Keeps byte strings by name. `path` is its folder, where it has one; `read_only` says that it takes no more."""

    @property
    def path(self) -> Path | None:
        """The folder."""

    @property
    def read_only(self) -> bool:
        """Whether nothing can be kept."""

    def read(self, name: str, limit: int | None = None) -> bytes | None:
        """Return the entry (or its first `limit` bytes), or None if there is none."""

    def write(self, name: str, data: bytes) -> None:
        """Keep `data` under `name`; whole or not at all."""

    def items(self) -> list[Item]:
        """Return what is kept, last used first."""

    def touch(self, name: str) -> None:
        """Note that an entry was used."""

    def remove(self, name: str) -> None:
        """Forget an entry; nothing happens if it is gone already."""


class MemoryStore:
    """Keeps entries for this process only: what is left when there is no directory to trust."""

    path = None
    read_only = False

    def __init__(self) -> None:
        self._entries: dict[str, tuple[bytes, float, float]] = {}

    def read(self, name: str, limit: int | None = None) -> bytes | None:
        """Return the entry (or its first `limit` bytes), or None if there is none."""
        found = self._entries.get(name)
        return None if found is None else found[0][:limit]

    def write(self, name: str, data: bytes) -> None:
        """Keep `data` under `name`."""
        self._entries[name] = (data, time.time(), time.time())

    def items(self) -> list[Item]:
        """Return what is kept, last used first."""
        found = [Item(name, len(data), made, used) for name, (data, made, used) in self._entries.items()]
        return sorted(found, key=lambda item: -item.used_s)

    def touch(self, name: str) -> None:
        """Note that an entry was used."""
        if name in self._entries:
            data, made, _ = self._entries[name]
            self._entries[name] = (data, made, time.time())

    def remove(self, name: str) -> None:
        """Forget an entry."""
        self._entries.pop(name, None)


class DirectoryStore:
    """Keeps each entry in a file of a directory that this user alone can use, or that all can only read."""

    def __init__(self, path: Path, *, create: bool = True, read_only: bool = False) -> None:
        self.path = path
        try:
            if create and not read_only:
                path.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = path.lstat()
            self.read_only = read_only or status.st_uid != os.geteuid() or not status.st_mode & 0o222
            self._check(status, path, stat.S_ISDIR)
        except OSError as error:
            raise StorageError("the trace cache cannot be used", seen=f"{path} ({error.strerror})") from error

    def read(self, name: str, limit: int | None = None) -> bytes | None:
        """Return the entry (or its first `limit` bytes), or None if there is none."""
        try:
            descriptor = os.open(self._place(name), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageError("a trace cannot be read", seen=f"{self._place(name)} ({error.strerror})") from error
        with os.fdopen(descriptor, "rb") as stream:
            self._check(os.fstat(descriptor), self._place(name), stat.S_ISREG)
            return stream.read(-1 if limit is None else limit)

    def write(self, name: str, data: bytes) -> None:
        """Keep `data` under `name`; whole or not at all, readable by this user alone."""
        place = self._place(name)
        try:
            files.write_file(place, data, mode=0o600)
        except OSError as error:
            raise StorageError("a trace cannot be written", seen=f"{place} ({error.strerror})") from error
        self.sweep()

    def sweep(self) -> None:
        """Remove what writers that were killed left behind: hidden files, which no reader looks at, and counts of
        entries that are gone.
        """
        if self.read_only:
            return
        unfinished.sweep(str(self.path))
        for place in self.path.glob(f"*{COUNTS_SUFFIX}"):
            if not place.with_suffix(_SUFFIX).exists():
                with contextlib.suppress(OSError):
                    place.unlink()

    def items(self) -> list[Item]:
        """Return what is kept, last used first."""
        found = []
        for place in self.path.glob(f"*{_SUFFIX}"):
            with contextlib.suppress(FileNotFoundError):
                info = place.lstat()
                found.append(Item(place.name[: -len(_SUFFIX)], info.st_size, info.st_mtime, info.st_atime))
        return sorted(found, key=lambda item: -item.used_s)

    def touch(self, name: str) -> None:
        """Note that an entry was used: its access time, set by hand because file systems rarely do."""
        if self.read_only:
            return
        with contextlib.suppress(OSError):
            made = self._place(name).lstat().st_mtime
            os.utime(self._place(name), (time.time(), made), follow_symlinks=False)

    def remove(self, name: str) -> None:
        """Forget an entry; nothing happens if it is gone already."""
        try:
            for place in (self._place(name), self.path / f"{name}{COUNTS_SUFFIX}"):
                place.unlink(missing_ok=True)
        except OSError as error:
            raise StorageError("a trace cannot be removed", seen=f"{self._place(name)} ({error.strerror})") from error

    def _place(self, name: str) -> Path:
        if not name.isalnum():
            raise StorageError("not the name of a trace", seen=name)
        return self.path / f"{name}{_SUFFIX}"

    def _check(self, info: os.stat_result, place: Path, expected: object) -> None:
        if not expected(info.st_mode):  # type: ignore[operator]
            seen = f"{place} ({stat.filemode(info.st_mode)})"
            raise StorageError("not what the trace cache keeps", seen=seen, remedy="name a folder of its own")
        baked = self.read_only and info.st_uid in (0, os.geteuid()) and not info.st_mode & 0o022
        if not baked and (info.st_uid != os.geteuid() or info.st_mode & 0o077):
            raise StorageError(
                "the trace cache holds code, and others can reach this one",
                seen=f"{place} ({stat.filemode(info.st_mode)}, owner {info.st_uid})",
                remedy="use a directory that you own with mode 0700, or one that nobody can write to (a-w)",
            )


def default_directory() -> Path:
    """Return where traces are kept when nobody says: below `GLOWPLUG_CACHE_DIR` or the user's cache
    folder.
    """
    place = cache_files.location("traces")
    if place is None:
        raise StorageError(
            "there is no folder for the trace cache",
            seen="this user has no home",
            remedy=f"set {cache_files.VARIABLE}",
        )
    return Path(place)


def prune(store: EntryStore, *, max_bytes: int | None = None, older_than_s: float | None = None) -> list[Item]:
    """Remove the entries that were not used for longest until the rest fits; return what was removed."""
    removed: list[Item] = []
    total = 0
    for item in store.items():
        total += item.size
        stale = older_than_s is not None and item.used_s < time.time() - older_than_s
        if stale or (max_bytes is not None and total > max_bytes):
            store.remove(item.name)
            removed.append(item)
            total -= item.size
    return removed
