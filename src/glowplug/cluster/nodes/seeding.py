"""Brings one model to one node: chunks of its own share from the origin, all others from other nodes. Runs in an agent.

What comes from others goes through Ray's object store, and is checked by the node cache before it counts. Another node
that is gone, or cannot, means the next one, then the origin. What this node reads from the origin, for itself or for
another, is on its disk before it is given away: nothing that falls off the shelf is read from the origin again.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from typing import Any

from glowplug.core.errors import GlowplugError, ObjectNotFoundError, UnreachableError
from glowplug.store.backend import Data
from glowplug.store.progress import Transfer
from glowplug.store.pull import obtain
from glowplug.store.sharing import Chunks, Description, Fetch, Origin

from .shares import order
from .shelf import Shelf

_CHUNK_S = 60.0  # for one chunk from another node; then that node is taken for gone
_BEGINS_S = 10.0  # for a fetch of this node that was announced; then others are given chunks that are not kept here
_READS = 8  # from the origin, at the same time


@dataclass(slots=True)
class Counts:
    """What came from where, in bytes, and how far it is."""

    origin_bytes: int = 0
    peer_bytes: int = 0
    done_bytes: int = 0
    total_bytes: int = 0
    passed_over: set[str] = field(default_factory=set)  # nodes that could not be asked


class UnpushedError(Exception):
    """A chunk is asked of an origin that has none."""


class Seed:
    """One model on this node: what others are given of it, and how it comes here."""

    def __init__(self, description: Description, node: str, shelf: Shelf, readers: Executor, ray: Any) -> None:
        self.description, self.counts = description, Counts(total_bytes=description.tree.size)
        self._chunks = Chunks(description)
        self._sizes = self._chunks.sizes
        self._node, self._shelf, self._readers, self._ray = node, shelf, readers, ray
        self._origin: Origin | None = None
        self._unreachable: UnreachableError | None = None
        self._lock = threading.Lock()
        self._given: set[str] = set()
        self._reads = threading.BoundedSemaphore(_READS)
        self._reading: dict[str, Future[Data]] = {}
        self._fetch: Fetch | None = None
        self._begun = threading.Event()
        self._begun.set()

    def expect(self) -> None:
        """Know that this node is about to fetch: what others ask for until then waits, so that it can be kept."""
        if self._fetch is None:
            self._begun.clear()

    def offer(self, chunk: str) -> Any:
        """Return the future reference of a chunk for another node: from this node's cache, or from the origin."""
        future, mine = self._shelf.claim(chunk)
        if mine:
            self._readers.submit(self._bring, chunk)
        return future

    def _bring(self, chunk: str) -> None:
        try:
            if not self._begun.wait(_BEGINS_S):
                self._begun.set()  # nobody waits for it again
            data = self._here(chunk) or self._once(chunk)
            self._shelf.put(chunk, self._ray.put(_as_array(data)), len(data))
        except BaseException as error:  # whoever waits for it is told
            self._shelf.fail(chunk, error)

    def _here(self, chunk: str) -> Data | None:
        """Return a chunk that is on this node's disk."""
        data = self._fetch.get(chunk) if self._fetch is not None else None
        return self._chunks.read(chunk) if data is None else data  # in this order: the first becomes the second

    def _once(self, chunk: str) -> Data:
        """Read a chunk from the origin, once however many want it, and keep it where this node fetches."""
        with self._lock:
            reading = self._reading.get(chunk)
            mine = reading is None
            if reading is None:
                reading = self._reading[chunk] = Future()
        if not mine:
            return reading.result()
        try:
            data = self._here(chunk) or self._shelved(chunk)  # it may have come just before
            if data is None:
                with self._reads:
                    data = self._from_origin(chunk)
            if self._fetch is not None:
                self._fetch.put(chunk, data)
        except BaseException as error:
            reading.set_exception(error)
            raise
        finally:
            with self._lock:
                del self._reading[chunk]
        reading.set_result(data)
        return data

    def _shelved(self, chunk: str) -> Data | None:
        reference = self._shelf.kept(chunk)
        return None if reference is None else memoryview(self._ray.get(reference))

    def _from_origin(self, chunk: str) -> Data:
        if not self.description.pushed:
            raise UnpushedError(self.description.url)
        with self._lock:
            if self._unreachable is not None:
                raise self._unreachable  # so that others need not wait for each chunk anew
            if self._origin is None:
                self._origin = Origin(self.description.url)
        try:
            data = self._origin.read(chunk, self._sizes[chunk])
        except UnreachableError as error:
            self._unreachable = error
            raise
        except ObjectNotFoundError as error:
            raise UnpushedError(self.description.url) from error
        with self._lock:
            self.counts.origin_bytes += len(data)
        return data

    def fetch(self, peers: Mapping[str, Any], holders: frozenset[str]) -> None:
        """Have it in this node's cache; raise one of `StorageError` where that cannot be."""
        self._unreachable = None
        self._given.clear()
        self.counts.passed_over.clear()
        nodes = [*peers, self._node]

        def read(chunk: str, size: int) -> Data:
            again = chunk in self._given  # it was not what its digest says
            self._given.add(chunk)
            asked = [] if again else order(chunk, nodes, holders)
            return self._first(chunk, [one for one in asked if one not in self.counts.passed_over], peers)

        def tell(transfer: Transfer) -> None:
            self.counts.done_bytes = transfer.done_bytes

        self._fetch = Fetch(self.description, read, self._begun.set)
        try:
            self._fetch.run(progress=tell).release()
        except UnpushedError:
            self._pull()
        finally:
            self._fetch = None
            self._begun.set()
        self.counts.done_bytes = self.counts.total_bytes

    def _pull(self) -> None:
        """Fetch files that nobody pushed as they are, when no other node has them any more."""
        obtain(f"{self.description.url}@{self.description.digest}").release()
        self.counts.origin_bytes += self.counts.total_bytes

    def _first(self, chunk: str, asked: list[str], peers: Mapping[str, Any]) -> Data:
        """Return a chunk from the first that has it."""
        for node in asked:
            if node == self._node:
                try:
                    return self._once(chunk)
                except (GlowplugError, UnpushedError):
                    continue  # this node cannot reach the origin; others may
            data = self._from_peer(chunk, node, peers[node])
            if data is not None:
                return data
        return self._from_origin(chunk)

    def _from_peer(self, chunk: str, node: str, agent: Any) -> Data | None:
        try:
            found = self._ray.get(agent.chunk.remote(self.description.digest, chunk), timeout=_CHUNK_S)
            if not found:  # nobody has told it yet what there is
                self._ray.get(agent.know.remote(self.description), timeout=_CHUNK_S)
                found = self._ray.get(agent.chunk.remote(self.description.digest, chunk), timeout=_CHUNK_S)
            data = memoryview(self._ray.get(found[0], timeout=_CHUNK_S))
        except self._ray.exceptions.RayTaskError:
            return None  # it lives, and cannot
        except self._ray.exceptions.RayError:
            self.counts.passed_over.add(node)
            return None
        if len(data) != self._sizes[chunk]:
            return None
        with self._lock:
            self.counts.peer_bytes += len(data)
        return data


def _as_array(data: Data) -> Any:
    """Return bytes as an array, which other processes of a node map and do not copy."""
    import numpy as np

    return np.frombuffer(data, np.uint8)
