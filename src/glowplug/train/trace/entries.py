"""Finds and keeps traces in a store, and says which kept trace comes nearest when none fits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from glowplug.core.errors import StorageError
from glowplug.train.notes import Notes
from glowplug.train.verify.probation import Probation

from . import entry as entry_format
from .entry import DamagedEntryError, Entry, Header
from .entry_store import DirectoryStore, EntryStore, Item, MemoryStore, prune
from .key import Change, Key, changes

_NEAREST_OF = 64  # headers that are read to explain a miss
_LATEST = 8  # entries kept decoded in memory, for the next model of the same architecture


class Entries:
    """A store of entries, with the last few in memory."""

    def __init__(self, store: EntryStore, notes: Notes, max_bytes: int) -> None:
        self.store = store
        self._notes = notes
        self._max_bytes = max_bytes
        self._latest: dict[str, Entry] = {}

    def find(self, key: Key) -> Entry | None:
        """Return the entry for a key. A damaged one is removed and counts as none."""
        digest = key.digest
        if digest in self._latest:
            return self._latest[digest]
        try:
            data = self.store.read(digest)
        except StorageError as error:
            self._notes.warn(str(error))
            return None
        if data is None:
            return None
        try:
            entry = entry_format.decode(data)
            if dict(entry.header.key.components) != dict(key.components):
                raise DamagedEntryError("it belongs to another key")
        except DamagedEntryError as error:
            self._notes.warn(f"a stored trace is damaged and was ignored ({digest[:12]}: {error})")
            self.forget(key)
            return None
        self.store.touch(digest)
        self._remember(digest, entry)
        return entry

    def keep(self, key: Key, info: Mapping[str, Any], plan: Mapping[str, Any], blobs: Mapping[str, bytes]) -> None:
        """Keep a trace. When the store cannot take it, this process still can."""
        data = entry_format.encode(key, info, plan, blobs)
        self._remember(key.digest, entry_format.decode(data))
        try:
            self.store.write(key.digest, data)
            prune(self.store, max_bytes=self._max_bytes)
        except StorageError as error:
            self._notes.warn(f"traces are kept for this process alone: {error}")
            self.store = MemoryStore()

    def forget(self, key: Key) -> None:
        """Remove the entry for a key."""
        self._latest.pop(key.digest, None)
        try:
            self.store.remove(key.digest)
        except StorageError as error:
            self._notes.warn(str(error))

    def probation(self, key: Key) -> Probation:
        """Return the counts of restores of the entry for a key."""
        return Probation(self.store.path if isinstance(self.store, DirectoryStore) else None, key.digest)

    def why_not(self, key: Key, function: str) -> tuple[str, list[Change]]:
        """Return the name of the nearest trace of the same kind of function and what differs from
        it, if any.
        """
        nearest, agreement = None, -1
        for item, header in headers(self.store, limit=_NEAREST_OF):
            if header.info.get("function") == function:
                equal = sum(header.key.components.get(name) == value for name, value in key.components.items())
                if equal > agreement:
                    nearest, agreement = item.name, equal
        if nearest is None:
            return "", []
        try:
            data = self.store.read(nearest)
            return nearest, [] if data is None else changes(entry_format.decode(data).key(), key)
        except (DamagedEntryError, StorageError):
            return "", []

    def _remember(self, digest: str, entry: Entry) -> None:
        self._latest[digest] = entry
        while len(self._latest) > _LATEST:
            del self._latest[next(iter(self._latest))]


def headers(store: EntryStore, limit: int | None = None) -> list[tuple[Item, Header]]:
    """Return the headers of the entries in a store, last used first, without those that cannot be read."""
    found = []
    for item in store.items()[:limit]:
        try:
            start = store.read(item.name, 64)
            data = None if start is None else store.read(item.name, entry_format.header_size(start))
            if data is not None:
                found.append((item, entry_format.decode_header(data)))
        except (DamagedEntryError, StorageError):
            continue
    return found
