"""HTTP and HTTPS, read through the standard library.

A web server has no listing, so only what was pushed, or a single file, can be fetched from one. `Retry-After` is taken
from the answer, which the clients of cloud storages do not show. Redirections are followed to HTTP and HTTPS only,
never from the latter to the former, and the proxies of the environment are used. An answer that ends before it should,
or that takes for ever, is one to ask for again; one that was compressed on its way is refused.
"""

from __future__ import annotations

import http.client
import re
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from typing import Any, NoReturn
from urllib.parse import quote

from glowplug.core.errors import AccessError, ObjectNotFoundError, StorageError, UnreachableError
from glowplug.store.backend import Data, Listed

_TIMEOUT_S = 60.0  # without a single byte
_LONGEST_S = 600.0  # of one answer, however slowly it comes
_PIECE_BYTES = 1 << 18
_LARGEST_BYTES = 1 << 50  # that a server may say an object has
_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(?:\d{1,18}|\*)")
_LATER = (408, 425, 429, 500, 502, 503, 504)
_UNSPLIT = 200  # the answer of a server that does not know ranges


def connect(root: str) -> WebBackend:
    """Return the backend of one web server."""
    return WebBackend(root)


class WebBackend:
    """The four operations on a web server; writing is `PUT`, listing shows the object of that name alone."""

    def __init__(self, root: str) -> None:
        self._root = root
        self.splits = True  # until the server shows that it does not know ranges
        self._opener = urllib.request.OpenerDirector()
        for handler in (
            urllib.request.ProxyHandler,
            urllib.request.HTTPHandler,
            urllib.request.HTTPSHandler,
            urllib.request.HTTPDefaultErrorHandler,
            _Redirections,
            urllib.request.HTTPErrorProcessor,
        ):
            self._opener.add_handler(handler())

    def size(self, path: str) -> int:
        """Return the length that the server tells."""
        return self._look(path).size

    def read(self, path: str, start: int, end: int) -> Data:
        """Return a range; from a server that does not know ranges, of as much as lies before its end."""
        url = self._url(path)
        with self._ask("GET", path, {"Range": f"bytes={start}-{end - 1}"}) as answer:
            if answer.headers.get("Content-Encoding", "identity") != "identity":
                raise StorageError(
                    "the server sends this compressed, which nobody asked for",
                    seen=f"{url} ({answer.headers['Content-Encoding'][:40]})",
                    remedy="switch compression off for these files",
                )
            first, length = 0, _length(answer)
            if answer.status != _UNSPLIT:
                told = _RANGE.fullmatch(answer.headers.get("Content-Range", ""))
                if told is None or int(told[1]) != start or not start <= int(told[2]) < end:
                    raise StorageError("the server answers with another range than was asked for", seen=url)
                first, length = start, int(told[2]) + 1 - start
            elif start > 0:
                self.splits = False
            deadline = time.monotonic() + _LONGEST_S
            try:
                skipped = sum(map(len, _pieces(answer, start - first, deadline)))
                data = b"".join(_pieces(answer, end - start, deadline))
            except (OSError, http.client.HTTPException) as error:
                raise _unreachable(url, error) from error
        if length is not None and skipped + len(data) < min(length, end - first):
            raise _unreachable(url, f"the answer ended after {skipped + len(data)} of {length} bytes")
        return data

    def write(self, path: str, data: Data) -> None:
        """Store an object with `PUT`."""
        with self._ask("PUT", path, {"Content-Type": "application/octet-stream"}, data) as answer:
            answer.read()

    def list(self, prefix: str) -> Iterator[Listed]:
        """Return the one object of that name: there is no way to list what a web server has in a folder."""
        try:
            yield self._look(prefix)
        except ObjectNotFoundError:
            return

    def children(self, prefix: str) -> Iterator[Listed]:
        """Refuse: there is no way to list what a web server has in a folder."""
        raise StorageError("a web server cannot list what it has", seen=self._url(prefix), remedy="use another storage")

    def remove(self, path: str) -> None:
        """Remove an object with `DELETE`."""
        try:
            with self._ask("DELETE", path) as answer:
                answer.read()
        except ObjectNotFoundError:
            return

    def _look(self, path: str) -> Listed:
        with self._ask("HEAD", path) as answer:
            length = _length(answer)
            tag = answer.headers.get("ETag") or answer.headers.get("Last-Modified") or ""
        if length is None:
            raise StorageError("the server does not say how long this is", seen=self._url(path))
        return Listed(path, length, tag)

    def _url(self, path: str) -> str:
        return f"{self._root}/{quote(path, safe='/%~:@!$&()*+,;=')}"

    def _ask(self, method: str, path: str, headers: dict[str, str] | None = None, data: Data | None = None) -> Any:
        url = self._url(path)
        body = None if data is None else bytes(data)
        request = urllib.request.Request(url, body, headers or {}, method=method)
        try:
            return self._opener.open(request, timeout=_TIMEOUT_S)
        except urllib.error.HTTPError as error:
            with error:
                _refuse(url, error)
        except ssl.SSLCertVerificationError as error:
            raise _untrusted(url, error) from error
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, ssl.SSLCertVerificationError):
                raise _untrusted(url, reason) from error
            raise _unreachable(url, reason) from error
        except UnicodeError as error:
            raise StorageError("this cannot be the name of a host", seen=url, remedy="look at the URL") from error


class _Redirections(urllib.request.HTTPRedirectHandler):
    """Follows where a server sends us: to another web server, over a way that is no less safe."""

    def redirect_request(self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: str) -> Any:
        scheme = newurl.partition(":")[0].lower()
        if scheme not in ("http", "https") or (req.type == "https" and scheme == "http"):
            raise StorageError(
                "the server sends us to where Glowplug does not follow",
                seen=f"{req.full_url} leads to {scheme[:20]}://…",
                remedy="use the URL that it leads to, if you trust that",
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _length(answer: Any) -> int | None:
    """Return how long a server says that its answer is; None where it does not say so in a way that can be believed."""
    text = answer.headers.get("Content-Length", "")
    length = int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else None
    return length if length is not None and length <= _LARGEST_BYTES else None


def _pieces(answer: Any, size: int, deadline: float) -> Iterator[bytes]:
    """Return the next bytes of an answer as they come; raise `TimeoutError` where they come too slowly."""
    while size > 0 and (piece := answer.read1(min(size, _PIECE_BYTES))):
        yield piece
        size -= len(piece)
        if time.monotonic() > deadline:
            raise TimeoutError(f"no end after {_LONGEST_S:.0f} s")


def _refuse(url: str, error: urllib.error.HTTPError) -> NoReturn:
    seen = f"{url} (status {error.code})"
    if error.code in (404, 410, 416):
        raise ObjectNotFoundError("the server has nothing here", seen=seen, remedy="look at the URL")
    if error.code in (401, 403, 407):
        raise AccessError(
            "the server asks for credentials", seen=seen, remedy="use a storage that has some: s3, gs, az or hdfs"
        )
    if error.code in _LATER:
        raise UnreachableError(
            "the server cannot answer now",
            seen=seen,
            remedy="try again later",
            retry_after_s=retry_after_s(error.headers.get("Retry-After")),
        )
    raise StorageError("the server refuses this", seen=seen)


def retry_after_s(text: str | None) -> float | None:
    """Return how many seconds a `Retry-After` asks for: a number, or a date from which it counts."""
    if not text:
        return None
    if text.strip().isdecimal():
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
        return max(0.0, moment.timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None


def _unreachable(url: str, reason: object) -> UnreachableError:
    return UnreachableError("the server does not answer", seen=f"{url} ({reason})", remedy="look at host and network")


def _untrusted(url: str, reason: ssl.SSLCertVerificationError) -> AccessError:
    return AccessError(
        "the server's certificate is not trusted",
        seen=f"{url} ({reason.verify_message})",
        remedy="add its authority to the system's, or set SSL_CERT_FILE",
    )
