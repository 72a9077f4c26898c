"""Removes from a storage what no published version needs: old descriptions, and the chunks that they alone name.

A chunk is named by descriptions: those that are published beside the pool, and those that the pool keeps by digest for
pinned URLs. What a published one names stays, and so does what one names that is young, or what is young itself: its
push may not have ended yet. Ages are by the storage's own clock. Where anything cannot be read, or somebody publishes
meanwhile, nothing is removed.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from glowplug.core.disk.digest import sha256
from glowplug.core.errors import ObjectNotFoundError, StorageError, UsageError

from . import tree as trees
from .backend import Listed, Place, open_backend
from .location import parse

DAY_S = 86_400.0
_DESCRIPTION = ".json"


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was removed."""

    objects: int
    bytes: int


def prune(url: str, *, older_than_s: float) -> Pruned:
    """Remove, from the pool beside a URL, what is older than that and needed by no published version."""
    if not older_than_s >= DAY_S:
        raise UsageError(
            "what is younger than a day may belong to a push that has not ended", seen=f"{older_than_s / DAY_S} days"
        )
    place = open_backend(parse(url))
    published = _published(place)
    pool = [one for one in place.backend.children(place.sibling(trees.POOL)) if not one.is_folder]
    dated = [one.modified_s for one in pool if one.modified_s is not None]
    limit_s = min(time.time(), max(dated, default=0.0)) - older_than_s  # the clock of this machine may be ahead
    old = [one for one in pool if one.modified_s is not None and one.modified_s < limit_s]
    young = {one.path for one in pool} - {one.path for one in old}
    described = {path: _read(place, path) for path in young if _name(path).endswith(_DESCRIPTION)}
    named = {name for data in (*published.values(), *described.values()) for name in _names(place, data)}
    unneeded = [one for one in old if _is_ours(_name(one.path)) and _name(one.path) not in named]
    if unneeded and _published(place) != published:
        raise StorageError("somebody published meanwhile", seen=place.url, remedy="prune again when nobody pushes")
    for one in sorted(unneeded, key=_chunks_last):
        place.backend.remove(one.path)
    return Pruned(len(unneeded), sum(one.size for one in unneeded))


def _published(place: Place) -> dict[str, bytes]:
    """Return the descriptions whose chunks lie in this pool."""
    parent = place.path.rpartition("/")[0]
    places = [trees.NAME] if not parent else []  # what is pushed to the root itself has its chunks there too
    for one in place.backend.children(parent):
        if one.is_folder and _name(one.path) != trees.POOL:
            places.append(f"{one.path}/{trees.NAME}")
    found = {path: _read(place, path) for path in places}
    return {path: data for path, data in found.items() if data is not None}


def _read(place: Place, path: str) -> bytes | None:
    try:
        return bytes(place.backend.read(path, 0, trees.MAX_BYTES + 1))
    except ObjectNotFoundError:
        return None


def _names(place: Place, data: bytes | None) -> list[str]:
    """Return what a description names, itself included. One that cannot be read could name anything, and is raised."""
    if data is None:
        return []
    chunks = [chunk.digest for one in trees.parse(data, place.url).files for chunk in one.chunks]
    return [f"{sha256(data)}{_DESCRIPTION}", *chunks]


def _is_ours(name: str) -> bool:
    return trees.is_digest(name.removesuffix(_DESCRIPTION))


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _chunks_last(one: Listed) -> tuple[bool, str]:
    """So that no description is left that names what is gone, whenever this process ends."""
    return not one.path.endswith(_DESCRIPTION), one.path
