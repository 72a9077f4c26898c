"""What lies under a URL: something that was pushed, with a description that says every chunk, or files as they are.

Of the latter a listing says which there are and whether they changed; their digests are those that arrive.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from glowplug.core.disk.digest import sha256
from glowplug.core.disk.relative_paths import objection
from glowplug.core.disk.unfinished import new_file, remove
from glowplug.core.errors import DamagedObjectError, ObjectNotFoundError, StorageError

from . import tree as trees
from .backend import Listed, Place
from .cutting import cut
from .location import Location
from .node_cache import entries
from .node_cache.entries import Held
from .node_cache.folder import Folder, cannot_write
from .progress import Meter
from .transfer.assembly import Assembly, Part
from .tree import Chunk, StoredFile, Tree

_LARGEST_BYTES = 1 << 42  # of what was not pushed: its parts must fit into a description


@dataclass(frozen=True, slots=True)
class Described:
    """Something that was pushed."""

    description: bytes
    tree: Tree
    begins: Callable[[Assembly], None] | None = None  # is told of a fetch, before anything is asked for

    @property
    def key(self) -> str:
        """What tells it from anything else: its digest."""
        return sha256(self.description)

    @property
    def names(self) -> list[str]:
        """The paths of its files."""
        return [one.path for one in self.tree.files]

    @property
    def size(self) -> int:
        """The bytes of all its files."""
        return self.tree.size

    def digest_in(self, folder: Folder) -> str | None:
        """Return the digest under which a node cache may have it."""
        return self.key

    def fetch(self, folder: Folder, partial: Path, place: Place, meter: Meter) -> Held:
        """Fetch it into the folder `partial` and make that an entry."""
        targets: dict[Chunk, list[tuple[str, int]]] = {}
        for one in self.tree.files:
            for offset, chunk in one.spans():
                targets.setdefault(chunk, []).append((one.path, offset))
        parts = [
            Part(place.sibling(f"{trees.POOL}/{chunk.digest}"), 0, chunk.size, chunk.digest, tuple(where))
            for chunk, where in targets.items()
        ]
        files = {one.path: one.size for one in self.tree.files}
        Assembly(folder, partial, place, meter).fill(files, parts, self.begins)
        return entries.publish(folder, partial, self.description, place.url)


@dataclass(frozen=True, slots=True)
class Plain:
    """A directory, or a file, as it lies on the storage: names, sizes and tags by relative path."""

    url: str
    files: tuple[Listed, ...]
    single: bool

    @property
    def key(self) -> str:
        """What tells it from anything else that may be listed here or elsewhere."""
        listing = [[one.path, one.size, one.tag] for one in self.files]
        return sha256(json.dumps([self.url, self.single, listing]).encode())

    @property
    def names(self) -> list[str]:
        """The paths of its files."""
        return [one.path for one in self.files]

    @property
    def size(self) -> int:
        """The bytes of all its files."""
        return sum(one.size for one in self.files)

    def digest_in(self, folder: Folder) -> str | None:
        """Return the digest under which a node cache may have it; None where that is not known."""
        if not self._tells_changes:
            return None
        try:
            text = (folder.root / "plain" / self.key).read_text(encoding="ascii")
        except (OSError, ValueError):
            return None
        return text if trees.is_digest(text) else None

    def fetch(self, folder: Folder, partial: Path, place: Place, meter: Meter) -> Held:
        """Fetch it into the folder `partial` and make that an entry."""
        if not self._tells_changes:
            remove(str(partial))  # what an earlier attempt left may be of another version
        parts = {
            one.path: [
                Part(self._object(place, one), start, end - start, None, ((one.path, start),))
                for start, end in cut(one.size)
            ]
            for one in self.files
        }
        assembly = Assembly(folder, partial, place, meter)
        try:
            digests = assembly.fill(
                {one.path: one.size for one in self.files}, [part for some in parts.values() for part in some]
            )
        except (DamagedObjectError, ObjectNotFoundError):  # it became shorter, or went away
            if listed(place) != self:
                raise ChangedError from None
            raise
        if listed(place) != self:
            raise ChangedError
        files = [
            StoredFile(path, tuple(Chunk(digests[part.key], part.size) for part in some))
            for path, some in parts.items()
        ]
        held = entries.publish(folder, partial, trees.dump(Tree(tuple(files), self.single)), place.url)
        try:
            with new_file(str(folder.part("plain") / self.key), mode=0o600) as stream:
                stream.write(held.digest.encode())
        except OSError as error:
            held.release()
            raise cannot_write(folder.root, error) from error
        return held

    @property
    def _tells_changes(self) -> bool:
        return all(one.tag for one in self.files)

    def _object(self, place: Place, one: Listed) -> str:
        return place.path if self.single else place.child(one.path)


Source = Described | Plain


class ChangedError(Exception):
    """A plain directory is not what it was when its fetch began."""


def resolve(place: Place, location: Location) -> Source:
    """Find out what is stored here."""
    if location.digest is not None:
        path = place.sibling(f"{trees.POOL}/{location.digest}.json")
        data = _read(place, path)
        if data is not None and sha256(data) == location.digest:
            return _described(place, path, data)
    path = place.child(trees.NAME)
    data = _read(place, path)
    if data is None:
        return listed(place)
    if location.digest not in (None, sha256(data)):
        raise ObjectNotFoundError(
            "the storage does not have the version that the URL asks for",
            seen=str(location),
            remedy=f"the one it has is {sha256(data)}",
        )
    return _described(place, path, data)


def _described(place: Place, path: str, data: bytes) -> Described:
    return Described(data, trees.parse(data, f"{place.url}: {path}"))


def _read(place: Place, path: str) -> bytes | None:
    try:
        return bytes(place.backend.read(path, 0, trees.MAX_BYTES + 1))
    except ObjectNotFoundError:
        return None


def listed(place: Place) -> Plain:
    """Return what lies on the storage as it is: a directory, else a file."""
    prefix = f"{place.path}/" if place.path else ""
    found = list(place.backend.list(place.path))
    inside = [replace(one, path=one.path.removeprefix(prefix)) for one in found if one.path.startswith(prefix)]
    files = [one for one in inside if one.path.partition("/")[0] != trees.POOL and not _is_folder(one)]
    size = sum(one.size for one in found)
    if len(found) > trees.MAX_FILES or size > _LARGEST_BYTES:
        raise StorageError(
            "there is more under this URL than one model has",
            seen=f"{place.url} ({len(found)} objects, {size} bytes)",
            remedy="look at the URL: name the folder of one model",
        )
    if files:
        for one in files:
            reason = objection(one.path)
            if reason:
                raise StorageError("the storage has a name that cannot be a file here", seen=f"{one.path!r} ({reason})")
        return Plain(place.url, tuple(sorted(files, key=lambda one: one.path)), single=False)
    for one in found:
        if one.path == place.path:
            return Plain(place.url, (replace(one, path=one.path.rpartition("/")[2]),), single=True)
    raise ObjectNotFoundError(
        "there is nothing under this URL", seen=place.url, remedy="look at the URL; `glowplug push` puts a bundle there"
    )


def _is_folder(one: Listed) -> bool:
    """Say whether this is an empty object that some tools make in the place of a folder."""
    return one.path.endswith("/") or not one.path
