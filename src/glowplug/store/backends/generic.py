"""Whatever fsspec knows: SFTP, SMB, WebDAV and many more, each with the package that its documentation names."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import fsspec

from glowplug.core.errors import AccessError, ObjectNotFoundError, SchemeError, StorageError, UnreachableError
from glowplug.store.backend import Data, Listed

_TAGS = ("ETag", "etag", "checksum", "mtime", "modified", "LastModified", "last_modified", "created")


def connect(root: str) -> GenericBackend:
    """Return the backend of one file system of fsspec."""
    return GenericBackend(root)


class GenericBackend:
    """The four operations on a file system of fsspec."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._lock = threading.Lock()  # for those that are not made for threads, as SFTP
        try:
            self._system, self._base = _open(root)
        except (ImportError, ValueError) as error:
            raise SchemeError(
                "fsspec cannot open this storage", seen=f"{root} ({error})", remedy="install the package that it names"
            ) from error
        except Exception as error:  # each file system has errors of its own
            raise _explained(root, error) from error

    def size(self, path: str) -> int:
        """Return the length of a file."""
        try:
            with self._turn():
                found = self._system.info(self._full(path))
        except Exception as error:
            raise self._error(path, error) from error
        if found.get("type") == "directory" or found.get("size") is None:
            raise ObjectNotFoundError("there is no such file", seen=f"{self._root}/{path}")
        return int(found["size"])

    def read(self, path: str, start: int, end: int) -> Data:
        """Return a range of a file."""
        try:
            with self._turn():
                data: bytes = self._system.cat_file(self._full(path), start=start, end=end)
        except Exception as error:
            raise self._error(path, error) from error
        return data

    def write(self, path: str, data: Data) -> None:
        """Store a file. Whether others may see a part of it meanwhile depends on the file system."""
        place = self._full(path)
        try:
            with self._turn():
                self._system.makedirs(place.rpartition("/")[0], exist_ok=True)
                self._system.pipe_file(place, bytes(data))
        except Exception as error:
            raise self._error(path, error) from error

    def list(self, prefix: str) -> Iterator[Listed]:
        """Return the files below a folder."""
        top = self._full(prefix)
        try:
            with self._turn():
                self._system.invalidate_cache()
                found: dict[str, dict[str, Any]] = self._system.find(top, detail=True)
        except FileNotFoundError:
            return
        except Exception as error:
            raise self._error(prefix, error) from error
        for name, one in sorted(found.items()):
            yield self._listed(name, one)

    def children(self, prefix: str) -> Iterator[Listed]:
        """Return what lies directly in a folder."""
        try:
            with self._turn():
                self._system.invalidate_cache()
                found: list[dict[str, Any]] = self._system.ls(self._full(prefix), detail=True)
        except (FileNotFoundError, NotADirectoryError):
            return
        except Exception as error:
            raise self._error(prefix, error) from error
        for one in found:
            yield self._listed(one["name"], one)

    def remove(self, path: str) -> None:
        """Remove a file."""
        try:
            with self._turn():
                self._system.rm_file(self._full(path))
        except FileNotFoundError:
            return
        except Exception as error:
            raise self._error(path, error) from error

    def _listed(self, name: str, one: dict[str, Any]) -> Listed:
        path = name.removeprefix(self._base).strip("/")
        if one.get("type") == "directory":
            return Listed(path, 0, "", is_folder=True)
        tag = " ".join(str(one[key]) for key in _TAGS if key in one)
        return Listed(path, int(one["size"]), tag, _modified_s(one))

    def _turn(self) -> contextlib.AbstractContextManager[object]:
        return contextlib.nullcontext() if getattr(self._system, "async_impl", False) else self._lock

    def _full(self, path: str) -> str:
        return f"{self._base}/{path}"

    def _error(self, path: str, error: Exception) -> StorageError:
        return _explained(f"{self._root}/{path}", error)


def _open(root: str) -> tuple[Any, str]:
    system, base = fsspec.core.url_to_fs(root)
    return system, base.rstrip("/")


def _modified_s(one: dict[str, Any]) -> float | None:
    """Return when a file was written, where the file system says so in one of the usual ways."""
    for key in ("mtime", "modified", "LastModified", "last_modified", "created"):
        value = one.get(key)
        if isinstance(value, int | float):
            return float(value)
        if isinstance(value, datetime):
            return value.timestamp()
    return None


def _explained(url: str, error: Exception) -> StorageError:
    text = f"{url} ({type(error).__name__}: {' '.join(str(error).split())[:200]})"
    if isinstance(error, FileNotFoundError | IsADirectoryError):
        return ObjectNotFoundError("the storage has nothing here", seen=url, remedy="look at the URL")
    if isinstance(error, PermissionError):
        return AccessError("the storage refuses these credentials", seen=text, remedy="see fsspec's documentation")
    if isinstance(error, NotImplementedError):
        return StorageError("this storage cannot do that", seen=text)
    return UnreachableError("the storage does not answer", seen=text, remedy="look at host and network")
