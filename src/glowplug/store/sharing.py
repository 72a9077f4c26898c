"""For hosts that pass bytes on to each other: what a URL names, one chunk of it, and a fetch with another way to read.

Whatever way the bytes came, they become an entry of the node cache as those of the origin do: each chunk is checked
against its digest, and the entry appears whole.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from glowplug.core.disk.digest import sha256
from glowplug.core.errors import DamagedObjectError, StorageError

from . import tree as trees
from .backend import Data, Listed, Place, open_backend
from .location import parse
from .node_cache import entries
from .node_cache.entries import Held
from .node_cache.folder import Folder, open_folder
from .node_cache.place import CONTENT, ENTRIES
from .progress import Progress
from .sources import Described, resolve
from .transfer.assembly import Assembly
from .transfer.fetching import fetch_once
from .transfer.retrying import Retrying

ReadChunk = Callable[[str, int], Data]  # a chunk's digest and size, to its bytes


@dataclass(frozen=True, slots=True)
class Description:
    """What a URL names: every chunk of it. `pushed` is false where the origin has files, not chunks, to read from."""

    url: str
    data: bytes
    pushed: bool

    @property
    def digest(self) -> str:
        """What names it."""
        return sha256(self.data)

    @property
    def tree(self) -> trees.Tree:
        """Its files and their chunks."""
        return trees.parse(self.data, self.url)


def describe(url: str) -> Description | None:
    """Ask the origin what a URL names; None where it has files as they are, whose chunks nobody knows yet."""
    location = parse(url)
    if location.digest is not None:
        known = _in_cache(location.url, location.digest)
        if known is not None:
            return known
    source = resolve(open_backend(location), location)
    return Description(location.url, source.description, pushed=True) if isinstance(source, Described) else None


def describe_held(url: str, held: Held) -> Description:
    """Return the description of an entry that is held."""
    found = _in_cache(parse(url).url, held.digest)
    if found is None:
        raise DamagedObjectError("an entry of the node cache has no description", seen=held.path)
    return Description(found.url, found.data, pushed=False)


def _in_cache(url: str, digest: str) -> Description | None:
    try:
        data = (open_folder().entry(digest) / "tree.json").read_bytes()
    except OSError:
        return None
    return Description(url, data, pushed=True) if sha256(data) == digest else None


def find(digest: str) -> Held | None:
    """Return the entry of this digest, held, if this host has it whole."""
    return entries.use_whole(open_folder(), digest, [])


def digests() -> set[str]:
    """Return what this host has."""
    return {one.digest for one in entries.entries(open_folder())}


class Origin:
    """The storage that something was pushed to. Connections to it are kept."""

    def __init__(self, url: str) -> None:
        self._place = open_backend(parse(url))

    def read(self, chunk: str, size: int) -> Data:
        """Read a chunk of it."""
        data = self._place.backend.read(self._place.sibling(f"{trees.POOL}/{chunk}"), 0, size)
        if len(data) != size:
            raise DamagedObjectError(
                "an object of the storage is cut off", seen=f"{chunk} ({len(data)} bytes of {size})"
            )
        return data


class Chunks:
    """The chunks of what is described, by digest: their sizes, and where they are in an entry."""

    def __init__(self, description: Description) -> None:
        self._content = Path(ENTRIES) / description.digest / CONTENT
        self._places = {
            chunk.digest: (one.path, offset, chunk.size)
            for one in description.tree.files
            for offset, chunk in one.spans()
        }

    @property
    def sizes(self) -> dict[str, int]:
        """The length of each chunk."""
        return {digest: size for digest, (_, _, size) in self._places.items()}

    def read(self, chunk: str) -> bytes | None:
        """Return a chunk from this host's entry; None where there is no such entry. It is not checked here."""
        path, offset, size = self._places[chunk]
        try:
            with (open_folder().root / self._content / path).open("rb", buffering=0) as stream:
                data = os.pread(stream.fileno(), size, offset)
        except OSError:
            return None
        return data if len(data) == size else None


class Fetch:
    """Brings what is described to the node cache, with its chunks from `read`, which is asked again for one that is
    not what its digest says.

    While it runs, other hosts may be given chunks that are here already, and what came for one of them is kept here
    too: whatever host asks first, a chunk comes from the origin once. `begun` is told when that can be done; `put` and
    `get` are safe from any thread.
    """

    def __init__(self, description: Description, read: ReadChunk, begun: Callable[[], None] | None = None) -> None:
        self._description, self._read, self._begun = description, read, begun
        self._assembly: Assembly | None = None

    def run(self, *, progress: Progress | None = None) -> Held:
        """Have it in the node cache, and return it."""
        folder, description = _writable(open_folder()), self._description
        held = entries.use_whole(folder, description.digest, [])
        if held is not None:
            return held
        backend = _Chunks(self._read, Chunks(description).sizes)
        place = Place(Retrying(backend, retries=0), "chunks", f"peers of {description.url}", description.url)
        return fetch_once(folder, place, Described(description.data, description.tree, self._begins), [], progress)

    def put(self, chunk: str, data: Data) -> bool:
        """Keep a chunk, if this runs and lacks it; say whether it is here now. It is checked."""
        return self._assembly is not None and self._assembly.put(chunk, data)

    def get(self, chunk: str) -> bytes | None:
        """Return a chunk that is here already, if this runs."""
        return self._assembly.get(chunk) if self._assembly is not None else None

    def _begins(self, assembly: Assembly) -> None:
        self._assembly = assembly
        if self._begun is not None:
            self._begun()


def _writable(folder: Folder) -> Folder:
    if not folder.writable:
        raise StorageError(
            "the node cache cannot be written",
            seen=folder.root,
            remedy="set GLOWPLUG_NODE_CACHE_DIR to a directory of your own",
        )
    return folder


class _Chunks:
    """A backend that has nothing but chunks. It is read from, a chunk at a time."""

    splits = False

    def __init__(self, read: ReadChunk, sizes: dict[str, int]) -> None:
        self._read, self._sizes = read, sizes

    def size(self, path: str) -> int:
        """Return the length of a chunk."""
        return self._sizes[Path(path).name]

    def read(self, path: str, start: int, end: int) -> Data:
        """Return a part of a chunk, for which all of it is read."""
        digest = Path(path).name
        return memoryview(self._read(digest, self._sizes[digest]))[start:end]

    def write(self, path: str, data: Data) -> None:
        """Nobody writes."""
        raise NotImplementedError

    def list(self, prefix: str) -> Iterator[Listed]:
        """There is nothing to list: the description says what there is."""
        return iter(())

    def children(self, prefix: str) -> Iterator[Listed]:
        """There are no folders."""
        return iter(())

    def remove(self, path: str) -> None:
        """Nobody removes."""
        raise NotImplementedError
