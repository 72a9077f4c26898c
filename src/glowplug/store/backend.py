"""What every storage offers, and which package stands behind a scheme.

A backend is four operations on names below a root (a bucket, a host, a file system), and two for housekeeping: what
lies directly in a folder, and to remove an object. It splits nothing, retries nothing and caches nothing: ranges,
retries and the bound on connections are the same for all, above. Every failure is one of `StorageError`; only an
`UnreachableError` is worth trying again. One that can hand out a long answer while it arrives has
`stream(path, start, end) -> Iterator[Data]` besides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Protocol
from urllib.parse import unquote, urlsplit

from glowplug.core.errors import SchemeError

from .location import FILE, Location, install_hint

if TYPE_CHECKING:
    from .transfer.retrying import Retrying

Data = bytes | memoryview


@dataclass(frozen=True, slots=True)
class Listed:
    """An object that a listing shows. `tag` is another whenever the object is another.

    `modified_s` is when it was written, by the storage's clock, where that is known. `is_folder` is for `children`.
    """

    path: str
    size: int
    tag: str
    modified_s: float | None = None
    is_folder: bool = False


class Backend(Protocol):
    """What a storage can do. Paths are relative to the root, with no slash at either end. All is safe from threads."""

    def size(self, path: str) -> int:
        """Return the length of an object in bytes; raise `ObjectNotFoundError` where there is none."""

    def read(self, path: str, start: int, end: int) -> Data:
        """Return the bytes from `start` to `end`; fewer only where the object ends before."""

    def write(self, path: str, data: Data) -> None:
        """Store an object, whole or not at all; one that is there is replaced."""

    def list(self, prefix: str) -> Iterator[Listed]:
        """Return the objects below a folder, at any depth; of a name that is an object, that one; else nothing.

        `tag` is empty where the storage has nothing that tells a changed object.
        """

    def children(self, prefix: str) -> Iterator[Listed]:
        """Return what lies directly in a folder: objects, and folders, which nobody looks into."""

    def remove(self, path: str) -> None:
        """Remove an object; one that is not there is no failure."""


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a storage: a backend, the path in it, and what names the origin for the bound on connections."""

    backend: Retrying
    path: str
    origin: str
    url: str

    def child(self, name: str) -> str:
        """Return the path of something below this place."""
        return f"{self.path}/{name}" if self.path else name

    def sibling(self, name: str) -> str:
        """Return the path of something beside this place; at the root it is below."""
        parent = self.path.rpartition("/")[0]
        return f"{parent}/{name}" if parent else name


# The storage's scheme -> the module whose `connect(root)` returns its backend. All else is fsspec's.
_MODULES = {
    FILE: "local",
    "http": "web",
    "https": "web",
    "s3": "cloud",
    "gs": "cloud",
    "az": "cloud",
    "hdfs": "hdfs",
    "viewfs": "hdfs",
}


def open_backend(location: Location, *, retries: int | None = None) -> Place:
    """Return the backend of a location, ready for use, and the location's path in it. Nothing is asked of the storage
    yet. `retries` is for those who would rather do without; else the settings say how often it is asked again."""
    from .transfer.retrying import Retrying

    root, path = _split(location)
    try:
        module = import_module(f".backends.{_MODULES.get(location.scheme, 'generic')}", __package__)
        connect: Callable[[str], Backend] = module.connect
        backend = connect(root)
    except ImportError as error:
        raise SchemeError(
            f"{location.scheme}:// needs a package that is not installed",
            seen=error.name or str(error),
            remedy=install_hint(location.scheme),
        ) from error
    return Place(Retrying(backend, retries=retries), path, root, location.url)


def _split(location: Location) -> tuple[str, str]:
    """Return a location's root and the path below it. Of a web address the path stays quoted as it is."""
    if location.scheme == FILE:
        return "file://", str(location.path).strip("/")
    parts = urlsplit(location.url)
    path = parts.path.strip("/")
    return f"{parts.scheme}://{parts.netloc}", path if location.scheme in ("http", "https") else unquote(path)
