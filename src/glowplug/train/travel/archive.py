"""One file that holds traces, to be baked into an image: a tar file of entries and their signatures.

    NAME.trace                     an entry, named by the digest of its key
    signatures/DIGEST.KEY          the signature of the entry with this digest by one key

A reader takes nothing else from it, and extracts nothing: each member is read within bounds, checked, and put where
entries are kept.
"""

from __future__ import annotations

import io
import os
import re
import tarfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from glowplug.core.disk import refusals
from glowplug.core.disk.regular_files import open_regular
from glowplug.core.disk.unfinished import new_file
from glowplug.core.errors import SignatureError, StorageError
from glowplug.store.signature import FOLDER
from glowplug.store.signature import MAX_BYTES as SIGNATURE_BYTES
from glowplug.train.trace import entry as entry_format
from glowplug.train.trace.entry import DamagedEntryError
from glowplug.train.trace.entry_store import EntryStore

from .remote import SUFFIX, RemoteTraces, is_name
from .terms import Terms

_SIGNATURE = re.compile(rf"{FOLDER}/[0-9a-f]{{64}}\.[0-9a-f]{{16}}")
_LARGEST_BYTES = 1 << 30
_MOST_MEMBERS = 100_000
_MAKE = "glowplug cache export FILE makes one"


@dataclass(slots=True)
class Moved:
    """What came of moving traces: those that were taken, were there already, and were refused, with the reason."""

    taken: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)


def export(store: EntryStore, path: Path, terms: Terms) -> Moved:
    """Write all entries of a store to one file, signed where there is a key."""
    moved = Moved()
    try:
        with new_file(str(path), mode=0o600, sync=True) as stream, tarfile.open(fileobj=stream, mode="w") as archive:
            for item in sorted(store.items(), key=lambda one: one.name):
                data = _whole(store, item.name, moved)
                if data is None:
                    continue
                signed = terms.signed(data)
                if signed is not None:
                    _add(archive, *signed)
                _add(archive, f"{item.name}{SUFFIX}", data)
                moved.taken.append(item.name)
    except OSError as error:
        seen = f"{path} ({error.strerror})"
        raise StorageError("the file cannot be written", seen=seen, remedy=refusals.remedy(error)) from error
    return moved


def take_in(path: Path, store: EntryStore, terms: Terms) -> Moved:
    """Put the entries of a file into a store, those that may be used."""
    moved = Moved()
    try:
        with os.fdopen(open_regular(path), "rb") as stream:
            if stream.read(1) == b"":
                raise StorageError("there are no traces in this file", seen=path, remedy=_MAKE)
            stream.seek(0)
            _take_members(stream, store, terms, moved)
    except (tarfile.TarError, EOFError, ValueError, IndexError, OverflowError, RecursionError) as error:
        seen = f"{path} ({error})"
        raise StorageError("this is no file of traces, or not all of one", seen=seen, remedy=_MAKE) from error
    except OSError as error:
        raise StorageError("the file cannot be read", seen=f"{path} ({error.strerror})", remedy=_MAKE) from error
    return moved


def push(store: EntryStore, remote: RemoteTraces) -> Moved:
    """Store all entries at a URL that are not there yet."""
    moved = Moved()
    for item in store.items():
        data = _whole(store, item.name, moved)
        if data is not None:
            (moved.taken if remote.store(item.name, data) else moved.known).append(item.name)
    return moved


def pull(remote: RemoteTraces, store: EntryStore) -> Moved:
    """Fetch all entries at a URL that are not here yet, those that may be used."""
    moved = Moved()
    here = {item.name for item in store.items()}
    for name in sorted(remote.names()):
        if name in here:
            moved.known.append(name)
        else:
            _take(name, lambda name=name: remote.fetch(name) or b"", store, moved)  # type: ignore[misc]
    return moved


def _take_members(stream: BinaryIO, store: EntryStore, terms: Terms, moved: Moved) -> None:
    signatures: dict[str, bytes] = {}
    with tarfile.open(fileobj=stream, mode="r:") as archive:
        for number, member in enumerate(archive):
            name = member.name.removesuffix(SUFFIX)
            is_entry = is_name(name) and member.name.endswith(SUFFIX)
            limit = _LARGEST_BYTES if is_entry else SIGNATURE_BYTES
            known = is_entry or _SIGNATURE.fullmatch(member.name) is not None
            if not (known and member.isreg() and 0 < member.size <= limit and number < _MOST_MEMBERS):
                raise StorageError("this file has something else in it than traces", seen=ascii(member.name)[:100])
            content = archive.extractfile(member)
            data = b"" if content is None else content.read(limit)
            if not is_entry:
                signatures[member.name] = data
                continue

            def checked(data: bytes = data) -> bytes:
                terms.check(data, signatures.get)
                return data

            _take(name, checked, store, moved)


def _take(name: str, read: Callable[[], bytes], store: EntryStore, moved: Moved) -> None:
    """Put one entry into a store, if it may be used and is what its name says."""
    try:
        data = read()
        if entry_format.decode(data).header.key.digest != name:
            raise DamagedEntryError("it belongs to another key")
    except SignatureError as error:
        moved.refused[name] = str(error)
    except DamagedEntryError as error:
        moved.refused[name] = f"it is damaged ({error})"
    else:
        store.write(name, data)
        moved.taken.append(name)


def _whole(store: EntryStore, name: str, moved: Moved) -> bytes | None:
    """Return an entry of this machine if it is one."""
    try:
        data = store.read(name)
        if data is not None:
            entry_format.decode(data)
    except (StorageError, DamagedEntryError) as error:
        moved.refused[name] = str(error)
        return None
    return data


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(data), 0o600  # and no time, so that equal traces make equal files
    archive.addfile(member, io.BytesIO(data))
