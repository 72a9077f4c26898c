"""From a URL to a verified directory on this machine: an entry of the node cache.

What is there already is found with few imports and, for a pinned URL, without a request; all else is imported here
only when it is needed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from glowplug.core.errors import DamagedObjectError, ObjectNotFoundError, SignatureError, StorageError

from .location import Location, parse
from .node_cache import entries
from .node_cache.entries import Held
from .node_cache.folder import Folder, open_folder

if TYPE_CHECKING:
    from .backend import Place
    from .progress import Progress
    from .signature import Trust
    from .sources import Source

Foreseen = Callable[[Sequence[str]], None]

_kept: dict[Path, Held] = {}


def pull(
    url: str, *, cache: Path | None = None, progress: Progress | None = None, trusted: Trust | None = None
) -> Path:
    """Return a local directory (or file) with what is stored under a URL. It stays until this process ends."""
    held = obtain(url, cache=cache, progress=progress, trusted=trusted)
    if held.path in _kept:
        held.release()
    else:
        _kept[held.path] = held
    return held.path


def obtain(
    url: str,
    *,
    cache: Path | None = None,
    progress: Progress | None = None,
    trusted: Trust | None = None,
    foreseen: Foreseen | None = None,
) -> Held:
    """Return what is stored under a URL, held in the node cache until it is released.

    `trusted` says whose signatures count and whether there must be one; without it, the environment does. `foreseen`
    is told the names of the files, as soon as they can be guessed, and before they are there.
    """
    location = parse(url)
    folder = open_folder(cache)
    trusted = _wanted(trusted)
    notes: list[str] = []
    held = _in_cache(folder, location, trusted, notes)
    if held is None:
        held = _from_origin(folder, location, trusted, notes, progress, foreseen or (lambda names: None))
    if location.digest not in (None, held.digest):
        held.release()
        raise DamagedObjectError(
            "what is stored here is not what the URL asks for",
            seen=f"{location.url} has {held.digest}",
            remedy="push that version again, or ask for this one",
        )
    held.notes = tuple(notes)
    return held


def _wanted(trusted: Trust | None) -> Trust | None:
    """Return whose signatures count; None where nobody asks for one."""
    if trusted is None:
        if not any(os.environ.get(name) for name in ("GLOWPLUG_TRUSTED_KEYS", "GLOWPLUG_REQUIRE_SIGNATURE")):
            return None
        from .signature import trust

        trusted = trust()
    return trusted if trusted.keys or trusted.required else None


def _in_cache(folder: Folder, location: Location, trusted: Trust | None, notes: list[str]) -> Held | None:
    """Return the entry of a pinned URL, if nothing need be asked of the origin: nobody asks for a signature, or it was
    kept with the entry."""
    held = entries.use_whole(folder, location.digest, notes)
    if held is None or trusted is None:
        return held
    digest = held.digest
    if _is_signature_kept(folder, digest, trusted):
        held.vouched = lambda: True
    elif trusted.required:
        held.release()
        return None
    else:
        held.vouched = lambda: _find_signer(folder, _opened(location), digest, trusted)
    return held


def _from_origin(
    folder: Folder,
    location: Location,
    trusted: Trust | None,
    notes: list[str],
    progress: Progress | None,
    foreseen: Foreseen,
) -> Held:
    """Ask the origin what there is. A signature that must be there is looked for before anything large is fetched."""
    before = entries.names_of_last(folder, location.url)
    if before:
        foreseen(before)
    from .sources import Described, resolve

    place = _opened(location)
    source = resolve(place, location)
    if not before:
        foreseen(source.names)
    signed_at = place if isinstance(source, Described) else None  # what nobody pushed, nobody signed
    signatures: dict[str, bytes] = {}
    if trusted is not None and trusted.required:
        signatures = _signatures(signed_at, source.key, trusted)
    held = entries.use_whole(folder, source.digest_in(folder), notes) or _fetch(folder, place, source, notes, progress)
    digest = held.digest
    if signatures:
        _keep(folder, digest, signatures)
        held.vouched = lambda: True
    elif trusted is not None:
        held.vouched = lambda: _find_signer(folder, signed_at, digest, trusted)
    return held


def _opened(location: Location) -> Place:
    from .backend import open_backend

    return open_backend(location)


def _is_signature_kept(folder: Folder, digest: str, trusted: Trust) -> bool:
    from .signature import Trust

    try:
        signer = Trust(trusted.keys).signer("bundle", digest, lambda name: entries.read_signature(folder, digest, name))
    except SignatureError:
        return False  # what is kept is damaged: the origin has another
    return signer is not None


def _find_signer(folder: Folder, place: Place | None, digest: str, trusted: Trust) -> bool:
    """Say whether the origin has the signature of a trusted key, and keep it."""
    signatures = _signatures(place, digest, trusted)
    _keep(folder, digest, signatures)
    return bool(signatures)


def _signatures(place: Place | None, digest: str, trusted: Trust) -> dict[str, bytes]:
    """Return the signature of a trusted key, by its name; nothing where there is none and none must be."""
    from .signature import MAX_BYTES

    found: dict[str, bytes] = {}

    def fetch(name: str) -> bytes | None:
        if place is None:
            return None
        try:
            found[name] = bytes(place.backend.read(place.child(name), 0, MAX_BYTES + 1))
        except ObjectNotFoundError:
            return None
        return found[name]

    trusted.signer("bundle", digest, fetch)
    return found


def _keep(folder: Folder, digest: str, signatures: dict[str, bytes]) -> None:
    for name, data in signatures.items():
        entries.keep_signature(folder, digest, name, data)


def _fetch(folder: Folder, place: Place, source: Source, notes: list[str], progress: Progress | None) -> Held:
    from .transfer.fetching import fetch_once

    if not folder.writable:
        raise StorageError(
            "the node cache does not have this, and cannot be written",
            seen=folder.root,
            remedy="set GLOWPLUG_NODE_CACHE_DIR to a directory of your own",
        )
    return fetch_once(folder, place, source, notes, progress)
