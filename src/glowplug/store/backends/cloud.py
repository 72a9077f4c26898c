"""S3, Google's and Azure's storage through `obstore`, and everything that speaks their protocols.

Credentials come from where the clients of each look for them; none is read here, except that the profiles of AWS's own
tools are used through `boto3` where that is installed, since `obstore` does not read them. Its own retries are off:
`retrying` does that for all storages.
"""

from __future__ import annotations

import http.client
import importlib.util
import os
import re
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, NoReturn

import obstore
from obstore import exceptions
from obstore.store import from_url

from glowplug.core.errors import AccessError, ObjectNotFoundError, StorageError, UnreachableError
from glowplug.store.backend import Data, Listed

from .web import retry_after_s

# The package raises Python's own errors where there is one that fits.
_ERRORS = (exceptions.BaseError, OSError, ValueError, NotImplementedError)
_NOT_FOUND = (exceptions.NotFoundError, FileNotFoundError)
_DENIED = (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError, PermissionError)
_STATUS = re.compile(r"status(?: code)?: (\d{3})")
_URL = re.compile(r"\?[^\s,]*")
_PATHS = re.compile(r"\S*/\S*")  # whose words are a user's, and mean nothing
_METADATA_HOSTS = ("169.254.169.254", "169.254.170.", "metadata.google.internal")
_BUSY = (429, 503)
_WISH_HOLDS_S = 5.0  # for as long a storage that is busy is not asked again how long it wants to be left alone
_PIECE_BYTES = 1 << 20
_LATER = (408, 425, 429, 500, 502, 503, 504)
_AWS_CREDENTIALS = (
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)
_CREDENTIALS = {
    "s3": "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give the machine a role",
    "gs": "set GOOGLE_APPLICATION_CREDENTIALS, or give the machine a service account",
}
_AZURE = "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, or give the machine an identity"


def connect(root: str) -> CloudBackend:
    """Return the backend of a bucket or container."""
    return CloudBackend(root)


class CloudBackend:
    """The four operations on a bucket."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._store = _open(root)
        self._asking = threading.Lock()
        self._wished: tuple[float, float | None] = (-_WISH_HOLDS_S, None)  # when, and how long

    def size(self, path: str) -> int:
        """Return the length of an object."""
        try:
            return int(obstore.head(self._store, path)["size"])
        except _ERRORS as error:
            self._refuse(path, error)

    def read(self, path: str, start: int, end: int) -> Data:
        """Return a range of an object."""
        try:
            return memoryview(obstore.get_range(self._store, path, start=start, end=end))
        except _ERRORS as error:
            self._refuse(path, error)

    def stream(self, path: str, start: int, end: int) -> Iterator[Data]:
        """Return a range of an object as it arrives. Few large answers cost a storage less than many small ones, and
        pieces that stay in the processor's cache cost us less than large ones."""
        try:
            answer = obstore.get(self._store, path, options={"range": (start, end)})
            for data in answer.stream(min_chunk_size=_PIECE_BYTES):
                yield memoryview(data)
        except _ERRORS as error:
            self._refuse(path, error)

    def write(self, path: str, data: Data) -> None:
        """Store an object in one request, so that nothing is left of one that breaks off."""
        try:
            obstore.put(self._store, path, data, use_multipart=False)
        except _ERRORS as error:
            self._refuse(path, error)

    def list(self, prefix: str) -> Iterator[Listed]:
        """Return the objects below a prefix, else the one of that name."""
        found = False
        try:
            for page in obstore.list(self._store, prefix or None):
                for one in page:
                    found = True
                    yield _listed(one)
            if not found and prefix:
                yield _listed(obstore.head(self._store, prefix))
        except _NOT_FOUND as error:
            if "NoSuchBucket" in str(error):
                self._refuse("", error)
        except _ERRORS as error:
            self._refuse(prefix, error)

    def children(self, prefix: str) -> Iterator[Listed]:
        """Return what lies directly below a prefix."""
        try:
            found = obstore.list_with_delimiter(self._store, prefix or None)
        except _NOT_FOUND as error:
            if "NoSuchBucket" in str(error):
                self._refuse("", error)
            return
        except _ERRORS as error:
            self._refuse(prefix, error)
        for folder in found["common_prefixes"]:
            yield Listed(folder.strip("/"), 0, "", is_folder=True)
        yield from map(_listed, found["objects"])

    def remove(self, path: str) -> None:
        """Remove an object."""
        try:
            obstore.delete(self._store, path)
        except _NOT_FOUND:
            return
        except _ERRORS as error:
            self._refuse(path, error)

    def _refuse(self, path: str, error: Exception) -> NoReturn:
        failure = explained(f"{self._root}/{path}", error)
        if isinstance(failure, UnreachableError) and any(f"code: {code}" in str(error) for code in _BUSY):
            failure.retry_after_s = self._wish(path)
        raise failure from error

    def _wish(self, path: str) -> float | None:
        """Return how long a storage that is busy wants to be left alone. One thread asks, for all."""
        with self._asking:
            at, wish = self._wished
            if time.monotonic() - at > _WISH_HOLDS_S:
                wish = self._ask_for_wish(path)
                self._wished = time.monotonic(), wish
            return wish

    def _ask_for_wish(self, path: str) -> float | None:
        """Ask for what the client does not show, by a small request that is signed for this.

        What it signs is a secret for as long as it holds, and goes nowhere else.
        """
        import urllib.error
        import urllib.request

        try:
            url = obstore.sign(self._store, "HEAD", path, timedelta(seconds=60))
            with urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=5):
                return None  # it answers again
        except urllib.error.HTTPError as error:
            with error:
                return retry_after_s(error.headers.get("Retry-After"))
        except (*_ERRORS, TypeError, http.client.HTTPException):
            return None


def _listed(one: Any) -> Listed:
    modified_s = one["last_modified"].timestamp()
    return Listed(one["path"], one["size"], f"{one.get('e_tag')} {one.get('version')} {modified_s}", modified_s)


def _open(root: str) -> Any:
    scheme = root.partition(":")[0]
    options: dict[str, Any] = {
        "client_options": {
            "connect_timeout": timedelta(seconds=10),
            "read_timeout": timedelta(seconds=60),
            "timeout": timedelta(seconds=600),
        },
        "retry_config": {"max_retries": 0},
    }
    if scheme == "s3":
        endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL", "")
        if endpoint.startswith("http://"):  # whoever names such an endpoint means it
            options["client_options"]["allow_http"] = True
        if endpoint:
            options["endpoint"] = endpoint
        options |= _profile()
    try:
        return from_url(root, **options)
    except _ERRORS as error:
        raise explained(root, error) from error


def _profile() -> dict[str, Any]:
    """Return the credentials of a profile of AWS's tools, where nothing else says who we are."""
    if any(os.environ.get(name) for name in _AWS_CREDENTIALS) or importlib.util.find_spec("boto3") is None:
        return {}
    from obstore.auth.boto3 import Boto3CredentialProvider

    try:
        return {"credential_provider": Boto3CredentialProvider()}
    except Exception:  # botocore raises errors of every kind; the machine may still have a role
        return {}


def explained(url: str, error: Exception) -> StorageError:
    """Return the error that says what the client's means. Its text may name URLs, of which no query is shown."""
    line = _URL.sub("", str(error).partition("\n")[0])
    status = _STATUS.search(line)
    code = int(status[1]) if status else 0
    about_metadata = any(host in line for host in _METADATA_HOSTS)
    if isinstance(error, _NOT_FOUND) and not about_metadata:
        return ObjectNotFoundError("the storage has nothing here", seen=url, remedy="look at the URL")
    if about_metadata or "credential" in _PATHS.sub("", line).lower():
        return AccessError("there are no credentials for this storage", seen=url, remedy=_remedy(url))
    if code == 404:
        return ObjectNotFoundError("the storage has nothing here", seen=url, remedy="look at the URL")
    if isinstance(error, _DENIED) or code in (401, 403):
        return AccessError("the storage refuses these credentials", seen=url, remedy=_remedy(url))
    if code in _LATER or (not code and isinstance(error, exceptions.GenericError)):
        return UnreachableError(
            "the storage does not answer", seen=f"{url} ({_short(line)})", remedy="look at endpoint and network"
        )
    return StorageError("the storage refuses this", seen=f"{url} ({_short(line)})")


def _short(line: str) -> str:
    return line.rpartition(" - ")[2][:200]


def _remedy(url: str) -> str:
    return _CREDENTIALS.get(url.partition(":")[0], _AZURE)
