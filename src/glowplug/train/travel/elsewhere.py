"""A trace cache whose entries come from a URL and go there: what `train.enable(cache_dir="s3://…")` uses.

Entries are kept in a folder of this machine as well, one for each URL and the terms on which its entries are taken, so
that what one program trusts is not found by another. A storage that fails is said once and then left alone: the program
goes on as if it held nothing.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path

from glowplug.core.disk import cache_files
from glowplug.core.errors import ObjectNotFoundError, SignatureError, StorageError
from glowplug.store.location import Location
from glowplug.train.notes import Notes
from glowplug.train.trace import entry as entry_format
from glowplug.train.trace.entry import DamagedEntryError, Header

from .remote import RemoteTraces, Uploads
from .terms import Terms

_PART = "traces-elsewhere"
_HEAD_BYTES = 1 << 16  # enough for most headers
_LARGEST_HEADER_BYTES = 1 << 22  # that is worth to be fetched to explain a miss


class RemoteCache:
    """What `Entries` asks for entries that are not on this machine."""

    def __init__(self, remote: RemoteTraces, notes: Notes, counts: Counter[str], *, read_only: bool) -> None:
        self._remote: RemoteTraces | None = remote
        self._notes, self._counts = notes, counts
        gives = remote.terms.key is not None or remote.terms.unsigned  # else nobody would take it, ourselves included
        self._uploads = Uploads(remote, self._give_up) if gives and not read_only else None

    def find(self, name: str) -> bytes | None:
        """Return an entry that may be used, or None; whatever is wrong was said."""
        remote = self._remote  # another thread may give up meanwhile
        if remote is None:
            return None
        try:
            data = remote.fetch(name)
        except SignatureError as error:
            self._notes.warn(f"a trace at {remote.location} is not used: {error}")
            return None
        except StorageError as error:
            self._give_up(error)
            return None
        if data is not None:
            self._counts["fetched"] += 1
        return data

    def offer(self, name: str, data: bytes) -> None:
        """Begin to store a new entry."""
        if self._uploads is not None and self._remote is not None:
            self._uploads.add(name, data)

    def headers(self, limit: int) -> list[tuple[str, Header]]:
        """Return the names and headers of some entries; of what is in them nothing was checked."""
        found: list[tuple[str, Header]] = []
        remote = self._remote
        if remote is None:
            return found
        try:
            for name in sorted(remote.names())[:limit]:
                header = _header(remote, name)
                if header is not None:
                    found.append((name, header))
        except StorageError as error:
            self._give_up(error)
        return found

    def finish(self) -> None:
        """Wait, for a while, until all that was offered is stored."""
        if self._uploads is not None:
            self._uploads.finish()

    def _give_up(self, error: StorageError) -> None:
        self._remote = None
        self._notes.warn(f"traces are kept on this machine alone: {error}")


def _header(remote: RemoteTraces, name: str) -> Header | None:
    try:
        data = remote.head(name, _HEAD_BYTES)
        size = entry_format.header_size(data)
        if size > _LARGEST_HEADER_BYTES:
            return None
        return entry_format.decode_header(data if size <= len(data) else remote.head(name, size))
    except (DamagedEntryError, ObjectNotFoundError):  # the latter: it went away since it was listed
        return None


def local_folder(location: Location, terms: Terms) -> Path:
    """Return where the entries of a URL are kept on this machine."""
    place = cache_files.location(_PART)
    if place is None:
        raise StorageError(
            "there is no folder for traces from elsewhere",
            seen="this user has no home",
            remedy=f"set {cache_files.VARIABLE}",
        )
    name = hashlib.sha256(location.url.encode()).hexdigest()[:16]
    return Path(place, f"{name}-{terms.identity}")
