"""Fetches what a storage has into the node cache, once on this host however many processes ask for it."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

from glowplug.core.disk.unfinished import remove
from glowplug.core.errors import DamagedObjectError, StorageError, UnreachableError
from glowplug.store.backend import Place
from glowplug.store.location import FILE
from glowplug.store.node_cache import entries, waiting
from glowplug.store.node_cache.entries import Held
from glowplug.store.node_cache.folder import Folder
from glowplug.store.node_cache.locks import Lock
from glowplug.store.progress import Meter, Progress
from glowplug.store.settings import from_environment
from glowplug.store.sources import ChangedError, Source, listed

from .assembly import allocated_bytes

_CHANGES = 3  # of a plain directory, while it is read
_FULL_SPEED_BYTES_PER_S = 8e9  # the start is put off by as long as a very fast network needs, drawn at random
_LONGEST_JITTER_S = 2.0


def fetch_once(folder: Folder, place: Place, source: Source, notes: list[str], progress: Progress | None) -> Held:
    """Fetch an entry, and again if what lies there changes meanwhile."""
    for _ in range(_CHANGES):
        try:
            return _fetch_or_wait(folder, place, source, notes, Meter(source.size, progress))
        except ChangedError:
            source = listed(place)
    raise StorageError("the directory changes while it is read", seen=place.url, remedy="try again later, or push it")


def _fetch_or_wait(folder: Folder, place: Place, source: Source, notes: list[str], meter: Meter) -> Held:
    """Fetch, or wait for the process of this host that does; go on with what one that died had done."""

    def find() -> Held | None:
        return entries.use_whole(folder, source.digest_in(folder), notes)

    def show() -> int:
        done = allocated_bytes(_partial(folder, source.key))
        meter.reach(done)
        meter.tell()
        return done

    turn = waiting.wait_for(folder, source.key, find, show)
    if isinstance(turn, Held):
        return turn
    with turn:
        held = _fetch(folder, place, source, meter, turn)
    meter.tell(last=True)
    return held


def _fetch(folder: Folder, place: Place, source: Source, meter: Meter, lock: Lock) -> Held:
    """Fetch while holding the lock. Why it could not be done is left for those who wait."""
    folder.part("partial")
    partial = _partial(folder, source.key, "" if lock.real else f".{os.urandom(8).hex()}")
    try:
        if not place.origin.startswith(FILE):
            time.sleep(_jitter_s(source.size))
        return source.fetch(folder, partial, place, meter)
    except ChangedError:
        remove(str(partial))
        raise
    except StorageError as error:
        if not lock.real or not isinstance(error, UnreachableError | DamagedObjectError):
            remove(str(partial))  # for those two it is worth to go on from there
        waiting.leave_failure(folder, source.key, error)
        raise


def _partial(folder: Folder, key: str, mark: str = "") -> Path:
    return folder.root / "partial" / f"{key}{mark}"


def _jitter_s(size: int) -> float:
    chosen = from_environment().start_jitter_s
    longest = min(_LONGEST_JITTER_S, size / _FULL_SPEED_BYTES_PER_S) if chosen is None else chosen
    return random.uniform(0, longest)
