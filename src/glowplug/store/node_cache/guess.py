"""What a load from a URL can begin with before the rest of `store` is imported: a guess at what will be used.

Nothing here is checked, and nothing depends on it: whoever loads looks again.
"""

from __future__ import annotations

import contextlib
import os
from importlib import import_module

from . import place

_DIGITS = 64
_HEXADECIMAL = frozenset("0123456789abcdef")
_MOST = 64  # entries to look at
# What brings shared libraries, which must not be opened beside TensorFlow's: one would wait for the other.
_CLIENTS = {
    **dict.fromkeys(("s3", "gs", "az", "abfs", "abfss"), "obstore"),
    **dict.fromkeys(("http", "https"), "http.client"),
    "hdfs": "hdfs_native",
}
_ALWAYS = ("heapq", "queue", "random")


def probable_content(url: str) -> str | None:
    """Return where the files of a URL are, if they were fetched before."""
    top = place.root()
    if top is None:
        return None
    entries = os.path.join(top, place.ENTRIES)
    digest = pin_of(url)
    if digest is None:
        digest = last_from(entries, url.rstrip("/"))
    return None if digest is None else os.path.join(entries, digest, place.CONTENT)


def pin_of(url: str) -> str | None:
    """Return the digest that a URL is pinned to."""
    digest = url.rpartition("@")[2].lower()
    return digest if len(digest) == _DIGITS and _HEXADECIMAL.issuperset(digest) else None


def import_client(url: str) -> None:
    """Import what brings shared libraries of all that will ask the origin of a URL."""
    client = _CLIENTS.get(url.partition("://")[0])
    for name in _ALWAYS if client is None else (*_ALWAYS, client):
        with contextlib.suppress(ImportError):  # whoever needs it says so
            import_module(name)


def last_from(entries: str, url: str) -> str | None:
    """Return the entry that came from a URL, the one last used; None where there are too many to look at."""
    wanted = url.encode("utf-8", "replace")
    found: list[tuple[float, str]] = []
    try:
        names = os.listdir(entries)
    except OSError:
        return None
    for name in names if len(names) <= _MOST else ():
        try:
            descriptor = os.open(os.path.join(entries, name, place.ORIGIN), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                same = os.read(descriptor, len(wanted) + 1) == wanted
            finally:
                os.close(descriptor)
            if same:
                found.append((os.stat(os.path.join(entries, name, place.LEASE)).st_mtime, name))
        except OSError:
            continue
    return max(found)[1] if found else None
