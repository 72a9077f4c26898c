"""Stores a directory under a URL: chunks by digest first, its description last.

A reader finds the old description or the new one, never a mixture, and a chunk that the storage has is not sent again.
Descriptions are also kept by digest, so that a pinned URL finds its version after another took the place.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial as bound
from io import FileIO
from pathlib import Path

from glowplug.core.disk.digest import sha256
from glowplug.core.disk.regular_files import OpenFolder
from glowplug.core.errors import ObjectNotFoundError, StorageError, UsageError

from . import tree as trees
from .backend import Place, open_backend
from .cutting import Span, cut
from .location import parse
from .progress import Meter, Progress
from .settings import from_environment
from .signature import PrivateKey, object_name
from .transfer.workers import Workers
from .tree import Chunk, StoredFile, Tree

_AHEAD = 2  # chunks that are read and wait for a connection, so that memory has a bound


@dataclass(frozen=True, slots=True)
class Pushed:
    """What a push did. `sent_bytes` is what the storage did not have yet, descriptions left out."""

    digest: str
    total_bytes: int
    sent_bytes: int


def push(
    directory: Path,
    url: str,
    *,
    boundaries: Mapping[str, Sequence[int]] | None = None,
    key: PrivateKey | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Pushed:
    """Store the files of a directory under a URL.

    `boundaries` are offsets, by relative path, at which parts of a file begin that change independently. `key`
    signs the result. With `force` every chunk is sent, also those that the storage has: for one whose objects were
    damaged.
    """
    location = parse(url)
    if location.digest is not None:
        raise UsageError("a digest is what a push returns", seen=url, remedy="leave out what follows the @")
    place = open_backend(location)
    folder = _open(directory)
    planned = [(path, cut(size, (boundaries or {}).get(path, ()))) for path, size in _files(folder, directory)]
    if not planned:
        raise UsageError("there is nothing to push: the directory has no files", seen=directory)
    meter = Meter(sum(spans[-1][1] for _, spans in planned if spans), progress)
    files = []
    connections = from_environment().connections
    with Workers(connections, "glowplug-push", meter.tell) as workers:
        sender = _Sender(place, meter, workers, connections + _AHEAD, force=force)
        try:
            for path, spans in planned:
                files.append(_send_file(sender, folder, directory, path, spans))
            workers.wait()
        except BaseException:
            place.backend.give_up()  # or a thread would go on trying
            raise
    description = trees.dump(Tree(tuple(files)))
    digest = sha256(description)
    place.backend.write(place.sibling(f"{trees.POOL}/{digest}.json"), description)
    if key is not None:
        place.backend.write(place.child(object_name(digest, key.public)), key.sign("bundle", digest))
    place.backend.write(place.child(trees.NAME), description)
    meter.tell(last=True)
    return Pushed(digest, sum(one.size for one in files), sender.sent_bytes)


class _Sender:
    """Sends chunks on several connections, each digest once, with no more than `most` in memory."""

    def __init__(self, place: Place, meter: Meter, workers: Workers, most: int, *, force: bool) -> None:
        self._place = place
        self._meter = meter
        self._workers = workers
        self._most = most
        self._force = force
        self._known: set[str] = set()
        self._sent: list[int] = []

    @property
    def sent_bytes(self) -> int:
        """How many bytes the storage did not have."""
        return sum(self._sent)

    def send(self, data: bytes) -> Chunk:
        """Begin to send a chunk, if this is the first time it is seen; wait while enough others are on their way."""
        chunk = Chunk(sha256(data), len(data))
        if chunk.digest in self._known:
            self._meter.add(chunk.size)
            return chunk
        self._known.add(chunk.digest)
        self._workers.wait(self._most - 1)
        self._workers.add(bound(self._store, chunk, data))
        return chunk

    def _store(self, chunk: Chunk, data: bytes) -> None:
        """Store one chunk. Runs on several threads."""
        path = self._place.sibling(f"{trees.POOL}/{chunk.digest}")
        if self._force or not self._is_there(path, chunk.size):
            self._place.backend.write(path, data)
            self._sent.append(chunk.size)
        self._meter.add(chunk.size)

    def _is_there(self, path: str, size: int) -> bool:
        try:
            return self._place.backend.size(path) == size
        except ObjectNotFoundError:
            return False


def _open(directory: Path) -> OpenFolder:
    try:
        return OpenFolder(directory)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UsageError("there is no such directory", seen=directory) from error
    except OSError as error:
        raise StorageError("the directory cannot be opened", seen=f"{directory} ({error.strerror})") from error


def _files(folder: OpenFolder, directory: Path) -> Iterator[tuple[str, int]]:
    """Return the files of a directory with their sizes, in the order of their paths."""
    from glowplug.core.disk.relative_paths import objection

    def refuse(error: OSError) -> None:
        name = str(error.filename).removeprefix(folder.path).strip("/")
        raise StorageError(
            "a folder of the directory cannot be pushed", seen=f"{directory / name} ({error.strerror})"
        ) from error

    found = []
    for top, folders, names in os.walk(folder.path, onerror=refuse):
        for name in folders:
            if Path(top, name).is_symlink():
                refuse(OSError(errno.ELOOP, "a link to a folder", str(Path(top, name))))
        for name in names:
            path = Path(top, name).relative_to(folder.path).as_posix()
            reason = objection(path)
            if reason:
                raise UsageError("a file has a name that cannot be pushed", seen=f"{path!a} ({reason})")
            found.append(path)
    for path in sorted(found):
        try:
            with FileIO(folder.open(path)) as stream:
                yield path, os.fstat(stream.fileno()).st_size
        except OSError as error:
            raise StorageError(
                "a file of the directory cannot be pushed", seen=f"{directory / path} ({error.strerror})"
            ) from error


def _send_file(sender: _Sender, folder: OpenFolder, directory: Path, path: str, spans: Sequence[Span]) -> StoredFile:
    """Send the chunks of one file, which must stay as it is meanwhile."""
    try:
        with FileIO(folder.open(path)) as stream:
            before = os.fstat(stream.fileno())
            chunks = tuple(sender.send(_read(stream, *span)) for span in spans)
            after = os.fstat(stream.fileno())
    except OSError as error:
        raise StorageError(
            "a file of the directory cannot be pushed", seen=f"{directory / path} ({error.strerror})"
        ) from error
    size = spans[-1][1] if spans else 0
    if (size, sum(one.size for one in chunks)) != (after.st_size,) * 2 or before.st_mtime_ns != after.st_mtime_ns:
        raise StorageError("a file changed while it was pushed", seen=directory / path, remedy="push again")
    return StoredFile(path, chunks)


def _read(stream: FileIO, start: int, end: int) -> bytes:
    return os.pread(stream.fileno(), end - start, start)
