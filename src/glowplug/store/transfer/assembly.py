"""Fills a directory with what a storage has, on several connections, and checks each part before it counts.

Files have their final length from the start and are filled where they will be mapped: nothing is unpacked afterwards.
What an earlier, killed attempt left is read and checked, not believed; parts that another entry of the node cache has
are copied from there. Parts come in random order, so that hosts which start together ask for different objects.
Whoever got a part some other way may put it into place, and others may have those that are, while the rest comes.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial as bound
from pathlib import Path

from glowplug.core.disk.digest import sha256
from glowplug.core.errors import DamagedObjectError
from glowplug.store.backend import Data, Place
from glowplug.store.node_cache import entries, room
from glowplug.store.node_cache.folder import Folder, cannot_write
from glowplug.store.node_cache.place import CONTENT
from glowplug.store.progress import Meter
from glowplug.store.settings import from_environment

from .journal import Begun, Journal
from .slots import Slots
from .workers import Gate, StoppedError, Workers

# What one request asks for. As much, for each connection, is fetched again when a process is killed: a share of it all.
_PIECES, _SMALLEST_PIECE, _LARGEST_PIECE = 112, 1 << 20, 8 << 20


@dataclass(frozen=True, slots=True)
class Part:
    """A run of bytes to fetch: from which object, and where in which files it goes. A digest says what it must be."""

    object: str
    start: int
    size: int
    digest: str | None
    targets: tuple[tuple[str, int], ...]

    @property
    def key(self) -> str:
        """What tells it from other parts of the same fetch."""
        return f"{self.object}@{self.start}"


class Assembly:
    """One fetch into the folder `partial`, by the one process that holds its lock."""

    def __init__(self, folder: Folder, partial: Path, place: Place, meter: Meter) -> None:
        settings = from_environment()
        self._folder = folder
        self._partial = partial
        self._content = partial / CONTENT
        self._place = place
        self._meter = meter
        self._connections = settings.connections
        self._slots = Slots(folder, place.origin, settings.connections)
        self._digests: dict[str, str] = {}
        self._gate = Gate()
        self._piece_bytes = _SMALLEST_PIECE
        self._elsewhere: Mapping[str, tuple[Path, int]] = {}
        self._known: Mapping[str, Part] = {}
        self._writing: Mapping[str, threading.Lock] = {}
        # Digests of parts that are where they belong, and were checked. Nothing writes there any more.
        self._placed: set[str] = set()

    def fill(
        self, files: Mapping[str, int], parts: Sequence[Part], begins: Callable[[Assembly], None] | None = None
    ) -> dict[str, str]:
        """Fetch everything; return the digest, by its key, of each part that came from the storage.

        `begins` is told of this when parts can be put into place, before any is asked for.
        """
        self._piece_bytes = max(_SMALLEST_PIECE, min(_LARGEST_PIECE, sum(files.values()) // _PIECES))
        try:
            self._prepare(files)
            with Journal(self._partial / entries.JOURNAL) as self._journal:
                self._known = {part.digest: part for part in parts if part.digest is not None}
                self._writing = {part.key: threading.Lock() for part in parts}
                if begins is not None:
                    begins(self)
                self._fetch(parts)
                self._gate.close()  # all parts are in place: nobody puts one there any more
            for path in files:
                (self._content / path).chmod(0o444)  # it will be mapped: nobody shortens it by mistake
        except OSError as error:
            raise cannot_write(self._partial, error) from error
        return dict(self._digests)

    def put(self, digest: str, data: Data) -> bool:
        """Put a part into place that came some other way, while `fill` runs; say whether it is there now.

        What has another digest is not. Safe from any thread.
        """
        part = self._known.get(digest)
        if part is None or len(data) != part.size:
            return False
        if digest in self._placed:
            return True
        if sha256(data) != digest:
            return False
        path, offset = part.targets[0]
        with contextlib.suppress(StoppedError, OSError), self._gate.passed(), self._writing[part.key]:
            _write(self._content / path, offset, data)
            self._journal.note(part.key, Begun(part.size, digest))
            self._placed.add(digest)
        return digest in self._placed

    def get(self, digest: str) -> bytes | None:
        """Return a part that is in place, while `fill` runs; None for one that is not yet. Safe from any thread."""
        part = self._known.get(digest)
        if part is None or digest not in self._placed:
            return None
        path, offset = part.targets[0]
        return _read(self._content / path, offset, part.size)

    def _prepare(self, files: Mapping[str, int]) -> None:
        allocated = allocated_bytes(self._partial)
        room.make(self._folder, max(0, sum(files.values()) - allocated))
        self._content.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._elsewhere = entries.chunk_places(self._folder)
        for path, size in files.items():
            target = self._content / path
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with contextlib.suppress(FileNotFoundError):
                target.chmod(0o600)  # of an attempt that was killed at its very end
            descriptor = os.open(target, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                os.ftruncate(descriptor, size)
            finally:
                os.close(descriptor)

    def _fetch(self, parts: Sequence[Part]) -> None:
        with Workers(self._connections, "glowplug-pull", self._meter.tell) as workers:
            try:
                for part in random.sample(parts, len(parts)):
                    workers.add(bound(self._fetch_part, part))
                workers.wait()
            except BaseException:
                self._place.backend.give_up()
                self._gate.close()  # whoever gets the lock next is the only one who writes
                raise

    def _fetch_part(self, part: Part) -> None:
        """Put one part into place. Runs on several threads."""
        if part.digest is None or not self._copy(part, part.digest):
            digest = self._from_origin(part, self._journal.begun.get(part.key))
            if part.digest not in (None, digest):  # it may be the way, or what an earlier attempt left: once more
                digest = self._from_origin(part, None)
            if part.digest not in (None, digest):
                raise _damaged("an object of the storage was altered", part.object)
            self._digests[part.key] = digest
            self._spread(part)
        if part.digest is not None:
            self._placed.add(part.digest)
        self._meter.add(part.size * len(part.targets))

    def _copy(self, part: Part, digest: str) -> bool:
        """Take a part from another entry, if one has it."""
        place = self._elsewhere.get(digest)
        data = _checked(*place, part.size, digest) if place else None
        if data is None:
            return False
        with self._gate.passed():
            for path, offset in part.targets:
                _write(self._content / path, offset, data)
        return True

    def _from_origin(self, part: Part, begun: Begun | None) -> str:
        """Read a part from the storage into its first place, from where an earlier attempt broke off; return its
        digest."""
        path, offset = part.targets[0]
        if part.digest is not None and part.digest in self._placed:
            return part.digest
        digest, done = hashlib.sha256(), 0
        if begun is not None and begun.done <= part.size:
            before = _checked(self._content / path, offset, begun.done, begun.digest)
            if before is not None:
                digest.update(before)
                done = begun.done
        begin, end = part.start + done, part.start + part.size
        with self._slots.one():
            for data in self._place.backend.pieces(part.object, begin, end, self._piece_bytes):
                if len(data) > part.size - done:
                    raise _damaged("an object of the storage is longer than it should be", part.object)
                digest.update(data)
                with self._gate.passed(), self._writing[part.key]:
                    if part.digest is not None and part.digest in self._placed:  # meanwhile, by `put`
                        return part.digest
                    _write(self._content / path, offset + done, data)
                    done += len(data)
                    self._journal.note(part.key, Begun(done, digest.hexdigest()))
        if done != part.size:
            self._journal.drop(part.key)  # there is nothing to go on with
            raise _damaged("an object of the storage is cut off", f"{part.object} ({part.start + done} bytes)")
        return digest.hexdigest()

    def _spread(self, part: Part) -> None:
        """Copy a part from its first place to the others."""
        (path, offset), *others = part.targets
        if others:
            with (self._content / path).open("rb") as stream:
                data = os.pread(stream.fileno(), part.size, offset)
            with self._gate.passed():
                for other, at in others:
                    _write(self._content / other, at, data)


def allocated_bytes(partial: Path) -> int:
    """Return how much of an unfinished fetch is on the disk."""
    return entries.content_bytes(partial, "st_blocks") * 512


def _checked(path: Path, offset: int, size: int, digest: str) -> bytes | None:
    """Return the bytes that lie there if they have this digest."""
    data = _read(path, offset, size)
    return data if data is not None and sha256(data) == digest else None


def _read(path: Path, offset: int, size: int) -> bytes | None:
    try:
        with path.open("rb", buffering=0) as stream:
            data = os.pread(stream.fileno(), size, offset)
    except OSError:
        return None
    return data if len(data) == size else None


def _write(path: Path, offset: int, data: Data) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        done = 0
        while done < len(data):
            done += os.pwrite(descriptor, memoryview(data)[done:], offset + done)
    finally:
        os.close(descriptor)


def _damaged(what: str, seen: str) -> DamagedObjectError:
    return DamagedObjectError(what, seen=seen, remedy="store it again: `glowplug push --force`")
