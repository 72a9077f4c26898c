"""Keeps the node cache within its bound: what was not used for longest goes first, what a live process uses stays."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from glowplug.core.disk.unfinished import remove
from glowplug.core.errors import DiskFullError
from glowplug.store.settings import CACHE_BYTES, from_environment

from .entries import Entry, entries, is_used, remove_unused
from .folder import Folder
from .locks import try_exclusive
from .place import VARIABLE as CACHE_DIR

_LARGEST_BYTES = 100_000_000_000
_FORSAKEN_S = 24 * 3600.0  # an unfinished fetch that nobody came back to


def make(folder: Folder, needed_bytes: int) -> None:
    """Make room for something new; raise `DiskFullError`, and remove nothing, where there cannot be enough."""
    sweep(folder, older_than_s=_FORSAKEN_S)
    chosen = from_environment().cache_bytes
    limit = bound(folder) if chosen is None else chosen
    if chosen is not None and needed_bytes > chosen:
        raise DiskFullError(
            "this is larger than the node cache may be",
            seen=f"{needed_bytes} bytes; {CACHE_BYTES} is {chosen}",
            remedy=f"set {CACHE_BYTES} higher",
        )
    if free_bytes(folder) < needed_bytes:
        sweep(folder)  # what killed fetches left can be fetched again
    kept = entries(folder)
    if free_bytes(folder) < needed_bytes:
        removable = sum(one.size for one in kept if not is_used(folder, one.digest))
        if free_bytes(folder) + removable < needed_bytes:
            raise DiskFullError(
                "the disk of the node cache has not enough room",
                seen=f"{needed_bytes} bytes are needed in {folder.root}, {free_bytes(folder)} are free",
                remedy=f"make room there, or set {CACHE_DIR} to a larger disk",
            )
    prune(folder, max_bytes=max(0, limit - needed_bytes))
    while kept and free_bytes(folder) < needed_bytes:
        remove_unused(folder, kept.pop().digest)


def prune(folder: Folder, *, max_bytes: int | None = None, older_than_s: float | None = None) -> list[Entry]:
    """Remove entries that nobody uses: those unused for longer, and the last used beyond `max_bytes` in all."""
    now, total, removed = time.time(), 0, []
    for entry in entries(folder):
        too_old = older_than_s is not None and now - entry.used_s > older_than_s
        too_much = max_bytes is not None and total + entry.size > max_bytes
        if (too_old or too_much) and remove_unused(folder, entry.digest):
            removed.append(entry)
        else:
            total += entry.size
    return removed


def sweep(folder: Folder, *, older_than_s: float = 0.0) -> None:
    """Remove what killed processes left: what was being removed, and fetches that nobody goes on with."""
    for path in _inside(folder, "trash"):
        remove(str(path))
    _sweep_locks(folder, max(older_than_s, _FORSAKEN_S))
    for path in _inside(folder, "partial"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime < older_than_s:
                continue
            lock = try_exclusive(folder.part("locks") / path.name.partition(".")[0])
            if lock is not None:
                with lock:
                    if lock.real or time.time() - path.stat().st_mtime > _FORSAKEN_S:
                        remove(str(path))
    _sweep_plain(folder)


def _sweep_plain(folder: Folder) -> None:
    """Forget which listing stood for an entry that is gone."""
    for path in _inside(folder, "plain"):
        with contextlib.suppress(OSError, ValueError):
            if not folder.entry(path.read_text(encoding="ascii")).exists():
                path.unlink()


def _sweep_locks(folder: Folder, older_than_s: float) -> None:
    """Remove locks and records of failures that belong to nothing any more."""
    for path in [*_inside(folder, "locks"), *_inside(folder, "failed")]:
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime < older_than_s or folder.entry(path.name).exists():
                continue
            lock = try_exclusive(path)
            if lock is not None:
                with lock:
                    path.unlink()  # while it is held: whoever waits for it looks whether it is still the same


def bound(folder: Folder) -> int:
    """Return how large the cache may be where the user did not say: half of its disk, and no more than most need."""
    status = os.statvfs(folder.root)
    return min(_LARGEST_BYTES, status.f_blocks * status.f_frsize // 2)


def free_bytes(folder: Folder) -> int:
    """Return how much this user may still write to the disk of the cache."""
    status = os.statvfs(folder.root)
    return status.f_bavail * status.f_frsize


def used_digests(folder: Folder) -> set[str]:
    """Return the entries that live processes use."""
    return {entry.digest for entry in entries(folder) if is_used(folder, entry.digest)}


def _inside(folder: Folder, name: str) -> list[Path]:
    try:
        return list((folder.root / name).iterdir())
    except OSError:
        return []
