"""From bytes to requests: httptools parses, and what it finds is bounded and checked here.

What a proxy in between may understand in another way is refused. What comes of a request that was read is not known
here: the connection is told through `Reader`.
"""

from __future__ import annotations

import re
from typing import Protocol

import httptools

from .exchange import HttpSettings, Request
from .fields import TwiceError, add_field, body_coding

_MAX_HEADER_BYTES = 1 << 16
_FIELD_BYTES = 4  # of a field beside its name and value: colon, blank, end of line
_SMALL_PIECE_BYTES = 1 << 12  # of a body: an object for each chunk of a byte would take fifty times its room
_OFFER = frozenset({b"connection", b"upgrade", b"http2-settings", b"expect"})  # not said again when declined
_ORIGIN = re.compile(rb"(?i)https?://[^/?#]*")  # of a target as proxies write it (RFC 9112, 3.2.2)
_VERSIONS = frozenset({"1.0", "1.1"})


class RefusedError(Exception):
    """What was sent is no request that is taken here; where the next one begins is unknown."""

    def __init__(self, status: int, text: str) -> None:
        self.status = status
        super().__init__(text)


class Reader(Protocol):
    """Whoever wants the requests: the connection."""

    local: bool  # whether they come over loopback or a unix socket

    def begun(self) -> None:
        """Learn that the first byte of a request is here."""

    def go_on(self) -> None:
        """Tell the client that its body is wanted."""

    def complete(self, request: Request, *, keep: bool) -> None:
        """Take a request; `keep` says that others may follow on the connection."""


class RequestParser:
    """Reads the requests of one connection. What their bodies hold is taken from the budget for all of them."""

    def __init__(self, reader: Reader, settings: HttpSettings) -> None:
        self._reader, self._settings = reader, settings
        self._parser = httptools.HttpRequestParser(self)
        self._taken = 0  # of the budget for bodies
        self._reset()

    def _reset(self) -> None:
        self._url = b""
        self._headers: dict[bytes, bytes] = {}
        self.has_begun = self._head_done = False
        self._header_bytes = 0
        self._unreported_bytes = 0
        self._body: list[bytes | bytearray] = []
        self._body_bytes = 0

    def forget(self) -> None:
        """Let go of the request that is being read."""
        self.give_back(self._body_bytes)
        self._reset()

    def forget_all(self) -> None:
        """Let go of what is being read, and of all that was read and not given back."""
        self._reset()
        self.give_back(self._taken)

    def give_back(self, size: int) -> None:
        """Give back what the body of a request took of the budget."""
        size = min(size, self._taken)
        self._taken -= size
        self._settings.bodies.give_back(size)
        self._settings.heap.freed(size)

    def feed(self, data: bytes) -> bytes:
        """Have data parsed; return what has to be parsed anew. Raises `RefusedError`."""
        headers, seen = self._headers, self._header_bytes + self._body_bytes
        try:
            self._parser.feed_data(data)
            if self._headers is headers and self._header_bytes + self._body_bytes == seen:
                self._count_unreported(len(data))
            else:
                self._unreported_bytes = 0
        except httptools.HttpParserUpgrade as error:
            return self._without_offer(data[error.args[0] :])
        except httptools.HttpParserError as error:
            if isinstance(error.__context__, RefusedError):
                raise error.__context__ from None
            raise RefusedError(400, "malformed HTTP request") from None
        return b""

    def _without_offer(self, rest: bytes) -> bytes:
        """Return a request without the other protocol that it offers, and what follows it.

        A server may go on as if there were no offer (RFC 9110, 7.8). Some clients offer HTTP/2 with each request.
        """
        if self._parser.get_method() == b"CONNECT":
            raise RefusedError(400, "this server is no proxy")
        head = b"%s %s HTTP/%s\r\n" % (self._parser.get_method(), self._url, self._parser.get_http_version().encode())
        for name, value in self._headers.items():
            if name not in _OFFER:
                head += b"%s: %s\r\n" % (name, value)
        if b"close" in self._headers.get(b"connection", b"").lower():
            head += b"connection: close\r\n"
        self._parser = httptools.HttpRequestParser(self)
        self._reset()
        return head + b"\r\n" + rest

    # httptools calls these

    def on_message_begin(self) -> None:
        self.has_begun = True
        self._reader.begun()

    def on_url(self, url: bytes) -> None:
        self._url += url
        self._count_header(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count_header(len(name) + len(value) + _FIELD_BYTES)
        if self._head_done:  # a trailer must not change what was said before the body (RFC 9110, 6.5.1)
            return
        try:
            add_field(self._headers, name, value)
        except TwiceError as error:
            raise RefusedError(error.status, str(error)) from None

    def on_headers_complete(self) -> None:
        self._head_done = True
        self._check_framing()
        length = self._headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > self._settings.max_body_bytes:
            raise self._too_large()
        if length.isdigit() and not self._settings.bodies.has(int(length)):
            raise self._no_room()
        if self._headers.get(b"expect", b"").lower() == b"100-continue" and not self._is_old():
            self._reader.go_on()

    def on_body(self, data: bytes) -> None:
        self._body_bytes += len(data)
        if self._body_bytes > self._settings.max_body_bytes:
            raise self._too_large()
        if not self._settings.bodies.take(len(data)):
            raise self._no_room()
        self._taken += len(data)
        if len(data) >= _SMALL_PIECE_BYTES:
            self._body.append(data)
        elif self._body and isinstance(self._body[-1], bytearray):
            self._body[-1] += data
        else:
            self._body.append(bytearray(data) if self._body else data)

    def on_message_complete(self) -> None:
        if self._parser.should_upgrade():
            return  # without its body: `_without_offer` has it parsed again
        target = _ORIGIN.sub(b"", self._url, count=1) if self._url[:1] != b"/" else self._url
        path = (target.partition(b"?")[0] or b"/").decode("ascii", "replace")
        first = self._body[0] if len(self._body) == 1 else b""
        body = first if isinstance(first, bytes) and first else b"".join(self._body)
        request = Request(
            self._parser.get_method().decode(),
            path,
            self._headers,
            body,
            self._reader.local,
            body_coding(self._headers),
            self._is_old(),
        )
        keep = self._parser.should_keep_alive()
        self._reset()
        self._reader.complete(request, keep=keep)

    # what is checked

    def _is_old(self) -> bool:
        return bool(self._parser.get_http_version() == "1.0")

    def _check_framing(self) -> None:
        """Refuse what a proxy in between may understand in another way."""
        version = self._parser.get_http_version()
        if version not in _VERSIONS:
            raise RefusedError(505, f"this server speaks HTTP/1.1, not {version}")
        coding = self._headers.get(b"transfer-encoding")
        if coding is None:
            return
        if self._is_old():
            raise RefusedError(400, "HTTP/1.0 has no transfer-encoding")
        if coding.strip().lower() != b"chunked":
            raise RefusedError(501, f"the only transfer-encoding here is chunked: {coding[:40].decode('latin-1')}")

    def _too_large(self) -> RefusedError:
        most = self._settings.max_body_bytes
        return RefusedError(413, f"the body is larger than {most} bytes (--max-request-bytes)")

    def _no_room(self) -> RefusedError:
        most = self._settings.bodies.max_bytes
        return RefusedError(503, f"all bodies together are larger than {most} bytes (--max-bodies-bytes); try again")

    def _count_header(self, size: int) -> None:
        self._header_bytes += size
        if self._header_bytes > _MAX_HEADER_BYTES:
            raise RefusedError(431, "the headers are too large")

    def _count_unreported(self, size: int) -> None:
        """The parser keeps a header until it is whole, however long it is."""
        self._unreported_bytes += size
        if self._unreported_bytes > _MAX_HEADER_BYTES:
            raise RefusedError(431, "the headers are too large")
