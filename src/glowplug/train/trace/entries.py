"""Finds and keeps traces in a store, and says which kept trace comes nearest when none fits."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any, Protocol

from glowplug.core.errors import StorageError
from glowplug.train.notes import Notes
from glowplug.train.verify.probation import Probation

from . import entry as entry_format
from .entry import DamagedEntryError, Entry, Header
from .entry_store import EntryStore, Item, MemoryStore, prune
from .key import Change, Key, changes
from .turns import in_turn

_NEAREST_OF = 64  # headers that are read to explain a miss
_NEAREST_ELSEWHERE = 16
_LATEST = 8  # entries kept decoded in memory, for the next model of the same architecture


class Elsewhere(Protocol):
    """A second store behind the first, from which entries come and to which they go."""

    def find(self, name: str) -> bytes | None:
        """Return an entry that may be used, or None; whatever is wrong was said."""

    def offer(self, name: str, data: bytes) -> None:
        """Take a new entry, now or later, if it takes any."""

    def headers(self, limit: int) -> list[tuple[str, Header]]:
        """Return the names and headers of some entries; of what is in them nothing was checked."""


class Entries:
    """A store of entries, with the last few in memory, and perhaps another store behind it."""

    def __init__(self, store: EntryStore, notes: Notes, max_bytes: int, elsewhere: Elsewhere | None = None) -> None:
        self.store = store
        self._notes = notes
        self._max_bytes = max_bytes
        self._elsewhere = elsewhere
        self._latest: dict[str, Entry] = {}
        self._forgotten: set[str] = set()  # what cannot be removed, or would come back from elsewhere

    def find(self, key: Key) -> Entry | None:
        """Return the entry for a key. A damaged one is removed and counts as none."""
        digest = key.digest
        if digest in self._latest:
            return self._latest[digest]
        if digest in self._forgotten:
            return None
        try:
            data = self.store.read(digest)
        except StorageError as error:
            self._notes.warn(str(error))
            return None
        if data is None:
            data = self._fetch(digest)
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
        self._forgotten.discard(key.digest)
        if self._elsewhere is not None:
            self._elsewhere.offer(key.digest, data)
        if self.store.read_only:
            return
        try:
            self.store.write(key.digest, data)
            prune(self.store, max_bytes=self._max_bytes)
        except StorageError as error:
            self._notes.warn(f"traces are kept for this process alone: {error}")
            self.store = MemoryStore()

    def _fetch(self, digest: str) -> bytes | None:
        """Return an entry from elsewhere, and keep it here: of the processes that ask at once, one fetches it."""
        if self._elsewhere is None:
            return None
        with in_turn(self.store.path):
            with contextlib.suppress(StorageError):
                data = self.store.read(digest)
                if data is not None:
                    return data
            data = self._elsewhere.find(digest)
            if data is not None and not self.store.read_only:
                try:
                    self.store.write(digest, data)
                except StorageError as error:
                    self._notes.tell(str(error))
            return data

    def forget(self, key: Key) -> None:
        """Remove the entry for a key."""
        self._latest.pop(key.digest, None)
        self._forgotten.add(key.digest)
        if self.store.read_only:
            return
        try:
            self.store.remove(key.digest)
        except StorageError as error:
            self._notes.warn(str(error))

    def probation(self, key: Key) -> Probation:
        """Return the counts of restores of the entry for a key."""
        return Probation(self.store.path, key.digest, read_only=self.store.read_only)

    def why_not(self, key: Key, function: str, label: str) -> tuple[str, list[Change]]:
        """Return the name of the nearest trace of what is called the same and what differs from it, if any: everything
        differs from a step of another program's model.
        """
        known = [(item.name, header) for item, header in headers(self.store, limit=_NEAREST_OF)]
        if self._elsewhere is not None:
            known += self._elsewhere.headers(_NEAREST_ELSEWHERE)
        called = (function, label)
        alike = [
            (name, header)
            for name, header in known
            if (header.info.get("function"), header.info.get("label")) == called
        ]
        if not alike:
            return "", []
        nearest, header = max(alike, key=lambda one: _agreement(one[1].key, key))
        try:
            data = self.store.read(nearest)
            if data is None:  # it is elsewhere, and what it says was not checked: only what we have a name for counts
                there = {name: header.key.components.get(name, "") for name in key.components}
                return nearest, changes(Key(there), Key(key.components))
            return nearest, changes(entry_format.decode(data).key(), key)
        except (DamagedEntryError, StorageError):
            return "", []

    def _remember(self, digest: str, entry: Entry) -> None:
        self._latest[digest] = entry
        while len(self._latest) > _LATEST:
            del self._latest[next(iter(self._latest))]


def _agreement(one: Key, other: Key) -> int:
    return sum(one.components.get(name) == value for name, value in other.components.items())


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
