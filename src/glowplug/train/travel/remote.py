"""Traces at a URL: one object an entry, named as in a folder, and beside them the signatures.

What is there is listed once and again after a while, so that a miss costs no request. Entries are stored from a thread
of its own, since a training run does not wait for a storage. Nothing at the URL is ever removed.
"""

from __future__ import annotations

import atexit
import queue
import threading
import time
from collections.abc import Callable

from glowplug.core.errors import ObjectNotFoundError, StorageError
from glowplug.store.backend import Place, open_backend
from glowplug.store.location import Location
from glowplug.store.signature import MAX_BYTES as SIGNATURE_BYTES

from .terms import Terms

SUFFIX = ".trace"
_LISTED_FOR_S = 60.0
_LARGEST_BYTES = 1 << 30
_FLUSH_S = 30.0  # how long the end of a program may wait for what is still to be stored


class RemoteTraces:
    """The traces at one URL, on some terms."""

    def __init__(self, location: Location, terms: Terms, *, retries: int | None = None) -> None:
        self.location, self.terms = location, terms
        self._place: Place = open_backend(location, retries=retries)
        self._listed: dict[str, int] | None = {}
        self._listed_at = -_LISTED_FOR_S

    def names(self) -> dict[str, int]:
        """Return the names of what is there, with the sizes; nothing where the storage cannot list."""
        return {
            name.removesuffix(SUFFIX): size
            for name, size in (self._listing() or {}).items()
            if name.endswith(SUFFIX) and is_name(name.removesuffix(SUFFIX))
        }

    def fetch(self, name: str) -> bytes | None:
        """Return a trace that may be used, or None where there is none; raises `SignatureError` for any other."""
        listing = self._listing()
        if listing is not None and f"{name}{SUFFIX}" not in listing:
            return None
        data = self._read(f"{name}{SUFFIX}", _LARGEST_BYTES)
        if data is not None:
            self.terms.check(data, lambda signature: self._read(signature, SIGNATURE_BYTES))
        return data

    def head(self, name: str, size: int) -> bytes:
        """Return the first bytes of a trace, of which nothing has been checked."""
        return bytes(self._place.backend.read(self._place.child(f"{name}{SUFFIX}"), 0, size))

    def store(self, name: str, data: bytes) -> bool:
        """Store a trace, its signature first; say whether there was need to."""
        signed = self.terms.signed(data)
        listing = self._listing() or {}
        if f"{name}{SUFFIX}" in listing and (signed is None or signed[0] in listing):
            return False
        if signed is not None:
            self._place.backend.write(self._place.child(signed[0]), signed[1])
        self._place.backend.write(self._place.child(f"{name}{SUFFIX}"), data)
        return True

    def _listing(self) -> dict[str, int] | None:
        """Return all objects below the URL with their sizes; None where the storage cannot list them."""
        if time.monotonic() - self._listed_at > _LISTED_FOR_S:
            if self.location.scheme in ("http", "https"):
                self._listed = None
            else:
                start = len(self._place.child(""))
                self._listed = {one.path[start:]: one.size for one in self._place.backend.list(self._place.path)}
            self._listed_at = time.monotonic()
        return self._listed

    def _read(self, name: str, limit: int) -> bytes | None:
        path = self._place.child(name)
        try:
            size = self._place.backend.size(path)
            if size > limit:
                raise StorageError("this object is larger than it can be", seen=f"{self.location}/{name}")
            return bytes(self._place.backend.read(path, 0, size))
        except ObjectNotFoundError:
            return None


def is_name(text: str) -> bool:
    """Say whether a text is the name of an entry."""
    return len(text) == 64 and set(text) <= set("0123456789abcdef")


class Uploads:
    """Stores traces from a thread. The end of the program waits for it, for a while."""

    def __init__(self, remote: RemoteTraces, failed: Callable[[StorageError], None]) -> None:
        self._remote, self._failed = remote, failed
        self._waiting: queue.SimpleQueue[tuple[str, bytes] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def add(self, name: str, data: bytes) -> None:
        """Begin to store a trace."""
        self._waiting.put((name, data))
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="glowplug-traces", daemon=True)
            self._thread.start()
            atexit.register(self.finish)

    def finish(self, timeout_s: float = _FLUSH_S) -> bool:
        """Wait until all is stored; say whether it is."""
        thread, self._thread = self._thread, None
        if thread is None:
            return True
        atexit.unregister(self.finish)
        self._waiting.put(None)
        thread.join(timeout_s)
        if thread.is_alive():
            self._failed(StorageError("traces could not be stored in time", seen=self._remote.location))
        return not thread.is_alive()

    def _run(self) -> None:
        while (one := self._waiting.get()) is not None:
            try:
                self._remote.store(*one)
            except StorageError as error:
                self._failed(error)
                return
