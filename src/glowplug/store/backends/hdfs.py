"""HDFS through `hdfs-native`, which needs no Java. Addresses and security come from Hadoop's own configuration."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from hdfs_native import Client, WriteOptions

from glowplug.core.errors import AccessError, ObjectNotFoundError, StorageError, UnreachableError
from glowplug.store.backend import Data, Listed

_MISSING = ("FileNotFoundException", "does not exist", "not found", "NotADirectory", "not a directory")
_REFUSED = ("AccessControlException", "Permission denied", "Kerberos", "SASL", "GSSAPI")


def connect(root: str) -> HdfsBackend:
    """Return the backend of a name node, or of a name service of the configuration."""
    return HdfsBackend(root)


class HdfsBackend:
    """The four operations on HDFS."""

    def __init__(self, root: str) -> None:
        self._root = root
        try:
            self._client: Any = Client(root if urlsplit(root).netloc else None)
        except Exception as error:  # the package raises whatever its library says
            raise _explained(root, error) from error

    def size(self, path: str) -> int:
        """Return the length of a file."""
        try:
            status = self._client.get_file_info(f"/{path}")
        except Exception as error:
            raise self._error(path, error) from error
        if status.isdir:
            raise ObjectNotFoundError("there is no such file", seen=f"{self._root}/{path} (it is a folder)")
        return int(status.length)

    def read(self, path: str, start: int, end: int) -> Data:
        """Return a range of a file."""
        try:
            reader = self._client.read(f"/{path}")
            end = min(end, len(reader))
            return bytes(reader.read_range(start, end - start)) if start < end else b""
        except Exception as error:
            raise self._error(path, error) from error

    def write(self, path: str, data: Data) -> None:
        """Store a file under another name, and give it its own when it is whole."""
        hidden = f"/{path}.{secrets.token_hex(8)}.glowplug-partial"
        try:
            with self._client.create(hidden, WriteOptions(overwrite=True, create_parent=True)) as writer:
                writer.write(data)
            self._client.rename(hidden, f"/{path}", overwrite=True)
        except Exception as error:
            raise self._error(path, error) from error

    def list(self, prefix: str) -> Iterator[Listed]:
        """Return the files below a folder."""
        return (one for one in self._statuses(prefix, recursive=True) if not one.is_folder)

    def children(self, prefix: str) -> Iterator[Listed]:
        """Return what lies directly in a folder."""
        return self._statuses(prefix, recursive=False)

    def remove(self, path: str) -> None:
        """Remove a file."""
        try:
            self._client.delete(f"/{path}", recursive=False)
        except Exception as error:
            explained = self._error(path, error)
            if not isinstance(explained, ObjectNotFoundError):
                raise explained from error

    def _statuses(self, prefix: str, *, recursive: bool) -> Iterator[Listed]:
        try:
            found = list(self._client.list_status(f"/{prefix}", recursive=recursive))
        except Exception as error:
            explained = self._error(prefix, error)
            if isinstance(explained, ObjectNotFoundError):
                return
            raise explained from error
        for one in found:
            path = (urlsplit(one.path).path if "://" in one.path else one.path).strip("/")
            if one.isdir:
                yield Listed(path, 0, "", is_folder=True)
            elif not path.endswith(".glowplug-partial"):
                modified = one.modification_time  # in milliseconds
                yield Listed(path, int(one.length), str(modified), modified / 1000)

    def _error(self, path: str, error: Exception) -> StorageError:
        return _explained(f"{self._root}/{path}", error)


def _explained(url: str, error: Exception) -> StorageError:
    text = " ".join(str(error).split())
    path = urlsplit(url).path
    text = text.replace(path, "…") if len(path) > 1 else text  # its words are a user's, and mean nothing here
    if isinstance(error, FileNotFoundError) or any(mark in text for mark in _MISSING):
        return ObjectNotFoundError("HDFS has nothing here", seen=url, remedy="look at the URL")
    if isinstance(error, PermissionError) or any(mark in text for mark in _REFUSED):
        return AccessError(
            "HDFS refuses this user",
            seen=f"{url} ({text[:200]})",
            remedy="set HADOOP_USER_NAME, or get a Kerberos ticket with kinit",
        )
    return UnreachableError(
        "HDFS does not answer",
        seen=f"{url} ({text[:200]})",
        remedy="look at the name node's address and HADOOP_CONF_DIR",
    )
