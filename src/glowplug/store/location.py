"""Where something is stored, from what a user wrote: `SCHEME://…`, a path, either with a digest behind `@`.

A URL travels into logs, process lists and messages. So one that carries a secret is refused, and no message repeats
the part that may be one: of a refused URL only the scheme is shown. Reads no storage and imports no client.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from glowplug.core.errors import LocationError

FILE = "file"

# What reads a scheme, as it may be written: the storage, and the extra with its package. The rest is fsspec's.
_STORAGES = {
    FILE: (FILE, ""),
    **dict.fromkeys(("s3", "s3a", "s3n"), ("s3", "s3")),
    **dict.fromkeys(("gs", "gcs"), ("gs", "s3")),
    **dict.fromkeys(("az", "azure", "adl", "abfs", "abfss"), ("az", "s3")),
    **{name: (name, "s3") for name in ("http", "https")},
    **{name: (name, "hdfs") for name in ("hdfs", "viewfs")},
}
_FSSPEC = "store"

_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://")
# Taken for a path, it would be made below the folder that one is in, and shown with whatever secret it has.
_MISTYPED = re.compile(rf"(?:{'|'.join(_STORAGES)})(?::/|//)", re.IGNORECASE)
_PIN = re.compile(r"@(?P<digest>[0-9a-fA-F]{64})$")
# Before the host: a container of Azure's, a user of Hadoop's. Elsewhere it is a name with a password, or a token.
_NAMED_BEFORE_HOST = frozenset(("abfs", "abfss", "hdfs", "viewfs"))
_PLAIN_NAME = re.compile(r"[A-Za-z0-9$_.-]+")
_NO_HOST = frozenset((FILE, "hdfs", "viewfs"))  # Hadoop's configuration names the default one
_HIDDEN = "the rest is not shown"


@dataclass(frozen=True, slots=True)
class Location:
    """A place in some storage. `url` has no pin and no slash at its end; `digest` is the manifest's, where pinned."""

    scheme: str
    url: str
    digest: str | None = None

    @property
    def path(self) -> Path:
        """The path of a `file` location."""
        if self.scheme != FILE:
            raise LocationError("this is no path on this machine", seen=self.url)
        return Path(_unquoted(urlsplit(self.url).path))

    @property
    def name(self) -> str:
        """The last part, which names what is there."""
        return self.path.name if self.scheme == FILE else self.url.rpartition("/")[2]

    def child(self, name: str) -> Location:
        """Return what lies below under one name, without a pin."""
        if self.scheme == FILE:
            return Location(FILE, (self.path / name).as_uri())
        return Location(self.scheme, f"{self.url}/{name}")

    def __str__(self) -> str:
        return self.url if self.digest is None else f"{self.url}@{self.digest}"


def is_url(text: object) -> bool:
    """Say whether a user meant a URL, not a path: it begins with a scheme, if only with one that lacks a sign."""
    return isinstance(text, str) and ("://" in text or _MISTYPED.match(text) is not None)


def parse(text: str) -> Location:
    """Return the location that a user wrote; raises `LocationError` for one that cannot be or must not be used."""
    pinned = _PIN.search(text)
    place = text[: pinned.start()] if pinned else text
    digest = pinned["digest"].lower() if pinned else None
    if not is_url(place):
        if not place or "\0" in place:
            raise LocationError("a path is needed", seen=repr(place))
        return Location(FILE, Path(place).absolute().as_uri(), digest)
    written = _SCHEME.match(place)
    if written is None:
        raise LocationError(
            "this is no URL", seen=f"it has no scheme of its own; {_HIDDEN}", remedy="write it as SCHEME://HOST/PATH"
        )
    scheme = written["scheme"].lower()
    rest = _without_secrets(place[written.end() :], scheme)
    if scheme == FILE:
        return Location(FILE, _file_url(rest), digest)
    storage, _ = _STORAGES.get(scheme) or _of_fsspec(scheme)
    url = f"{scheme if storage == 'az' else storage}://{rest}"  # Azure's schemes differ in what the host is
    return Location(storage, url, digest)


def _without_secrets(rest: str, scheme: str) -> str:
    """Return what follows the scheme, if no part of it can hold a secret."""
    if any(not sign.isprintable() or sign.isspace() for sign in rest):
        raise _refused("a URL has a space or a sign that cannot be printed", scheme, "write it as %20")
    if "?" in rest or "#" in rest:
        raise _refused(
            "a URL must not have a query or a fragment, which is where signatures and tokens are put",
            scheme,
            f"leave out what follows the ? or #; {_credentials(scheme)}",
        )
    authority, slash, path = rest.partition("/")
    before, at, host = authority.rpartition("@")
    if at and not (scheme in _NAMED_BEFORE_HOST and _PLAIN_NAME.fullmatch(before)):
        raise _refused("a URL must not have a user, password or token in it", scheme, _credentials(scheme))
    if not host and scheme not in _NO_HOST:
        raise _refused("a URL needs a bucket or host", scheme, f"write it as {scheme}://HOST/PATH")
    plain = unquote(path)
    if "\0" in plain:
        raise _refused("a URL must not have a zero byte in its path", scheme, "leave out %00")
    if not {".", ".."}.isdisjoint(plain.split("/")) and scheme != FILE:
        raise _refused("a URL must not have the parts . or .. in its path", scheme, "write the path without them")
    try:
        port = urlsplit(f"{scheme}://{authority}").port  # which looks at all of it
    except ValueError:
        port = 0
    if port == 0:
        raise _refused("the host or the port of a URL cannot be one", scheme, f"write it as {scheme}://HOST:PORT/PATH")
    return (authority + slash + path).rstrip("/") or "/"


def _file_url(rest: str) -> str:
    host, _, path = rest.partition("/")
    if host not in ("", "localhost"):
        raise LocationError(
            "a file URL names another host", seen=f"file://{host}/…", remedy="write it as file:///PATH, or mount it"
        )
    return Path("/", _unquoted(path)).as_uri()


def _unquoted(path: str) -> str:
    """Return the path that a file URL stands for: its bytes, which need not be text."""
    return unquote(path, encoding=sys.getfilesystemencoding(), errors=sys.getfilesystemencodeerrors())


def _of_fsspec(scheme: str) -> tuple[str, str]:
    """Return the storage of a scheme that is not among ours, if fsspec is installed and knows it."""
    try:
        from fsspec.registry import known_implementations, registry
    except ImportError:
        remedy = f"{install_hint(scheme)} brings those of fsspec"
    else:
        if scheme in known_implementations or scheme in registry:
            return scheme, _FSSPEC
        remedy = "fsspec does not know it either"
    known = ", ".join(sorted({storage for storage, _ in _STORAGES.values()}))
    raise LocationError("no storage has this scheme", seen=f"{scheme}://", remedy=f"Glowplug knows {known}; {remedy}")


def install_hint(scheme: str) -> str:
    """Return the command that installs what reads a scheme."""
    return f"pip install 'glowplug[{_STORAGES.get(scheme, (scheme, _FSSPEC))[1] or _FSSPEC}]'"


def _credentials(scheme: str) -> str:
    """Say where the credentials of a scheme come from."""
    place = {
        "s3": "the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN), a role of the machine",
        "gs": "GOOGLE_APPLICATION_CREDENTIALS or a service account of the machine",
        "az": "AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_TOKEN or an identity of the machine",
        "hdfs": "HADOOP_USER_NAME or a Kerberos ticket",
        "viewfs": "HADOOP_USER_NAME or a Kerberos ticket",
        "http": "a storage that has credentials of its own: plain HTTP is read without",
        "https": "a storage that has credentials of its own: plain HTTP is read without",
    }.get(_STORAGES.get(scheme, (scheme, ""))[0], "the usual place of the storage's client")
    return f"credentials come from {place}"


def _refused(what: str, scheme: str, remedy: str) -> LocationError:
    return LocationError(what, seen=f"{scheme}://…", remedy=remedy)
