"""HTTP/1.1 over asyncio: one connection, its requests in order, bounds on everything that is kept.

httptools parses; what is left is small, and far faster than a framework around it (see the decision record).
"""

from __future__ import annotations

import asyncio
import re
import time
import zlib
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from http import HTTPStatus

import httptools

from glowplug.serve.heap import Heap
from glowplug.serve.lingering import Lingering
from glowplug.serve.turns import TURN_BYTES, Turns

from .fields import TwiceError, accepts_gzip, add_field, body_coding

_MAX_HEADER_BYTES = 1 << 16
_FIELD_BYTES = 4  # of a field beside its name and value: colon, blank, end of line
_MAX_PIPELINED = 16
_SLICE_BYTES = 1 << 14  # parsed at a time: it may be thousands of requests, or of chunks
_TURN_SECONDS = 0.002  # what one connection may have parsed before the others have their turn
_SMALL_PIECE_BYTES = 1 << 12  # of a body: an object for each chunk of a byte would take fifty times its room
_OFFER = frozenset({b"connection", b"upgrade", b"http2-settings", b"expect"})  # not said again when declined
_ORIGIN = re.compile(rb"(?i)https?://[^/?#]*")  # of a target as proxies write it (RFC 9112, 3.2.2)
_VERSIONS = frozenset({"1.0", "1.1"})
_PROGRESS_BYTES = 1 << 20  # of a request, in the time in which a small one has to be there: bodies hold memory
_GZIP_FROM_BYTES = 1 << 12
_GZIP_LEVEL = 1
_QUICK_GZIP_BYTES = 1 << 18  # packing more takes milliseconds, and is done by a thread
_REASONS = {status.value: status.phrase for status in HTTPStatus} | {499: "Client Closed Request"}


@dataclass(slots=True)
class Request:
    """One request. Header names are lower case."""

    method: str
    path: str
    headers: dict[bytes, bytes]
    body: bytes
    local: bool  # came over loopback or a unix socket
    coding: str = ""  # how the body is packed: see `body_coding`
    old: bool = False  # HTTP/1.0, whose clients want to be told that a connection is kept


@dataclass(slots=True)
class Response:
    """One answer."""

    status: int
    body: bytes
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)


Handler = Callable[[Request], Awaitable[Response]]


class Budget:
    """What the bodies of all connections may hold together."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes, self._taken = max_bytes, 0

    def has(self, size: int) -> bool:
        """Say whether so much is left."""
        return self._taken + size <= self.max_bytes

    def take(self, size: int) -> bool:
        """Take some of it; say whether there was so much left."""
        if not self.has(size):
            return False
        self._taken += size
        return True

    def give_back(self, size: int) -> None:
        """Give back what was taken."""
        self._taken -= size


@dataclass(slots=True)
class HttpSettings:
    """Bounds of a connection."""

    max_body_bytes: int
    bodies: Budget
    heap: Heap = field(default_factory=Heap)
    turns: Turns = field(default_factory=Turns)
    idle_seconds: float = 75.0
    error_body: Callable[[str], bytes] = lambda text: text.encode()


class Connection(asyncio.Protocol):
    """One connection. Requests that come before an answer is out wait their turn."""

    def __init__(self, handler: Handler, settings: HttpSettings, open_connections: set[Connection]) -> None:
        self._handler, self._settings, self._open = handler, settings, open_connections
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._waiting: deque[tuple[Request, bool]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._lingering: Lingering | None = None
        self._local = False
        self._refusal: Response | None = None  # what to say behind the answers to the requests that wait
        self._draining = False
        self._deaf = False  # what is received means nothing any more
        self._broken = False  # nothing can be written any more
        self._taken = 0  # of the budget for bodies
        self._received = 0
        self._received_before = 0  # when the timer was set
        self._turn_bytes = 0  # received since it was this connection's turn
        self._resting = False  # until it is again
        self._unparsed = b""  # what came, and is parsed in a later turn
        self._writable: asyncio.Future[None] | None = None  # set while the client takes nothing
        self._reset()

    def _reset(self) -> None:
        self._url = b""
        self._headers: dict[bytes, bytes] = {}
        self._begun = self._head_done = False
        self._header_bytes = 0
        self._unreported_bytes = 0
        self._body: list[bytes | bytearray] = []
        self._body_bytes = 0

    # asyncio calls these

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        peer = transport.get_extra_info("peername")
        self._local = not isinstance(peer, tuple) or peer[0] in ("127.0.0.1", "::1", "::ffff:127.0.0.1")
        self._open.add(self)
        self._rest()

    def connection_lost(self, exc: Exception | None) -> None:
        self._open.discard(self)
        self._deaf = self._broken = True
        self._waiting.clear()
        self._unparsed = b""
        self._reset()
        self._give_back(self._taken)
        self.resume_writing()
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def pause_writing(self) -> None:
        self._writable = self._loop.create_future()
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None
        if self._task is None:
            self._listen()

    def data_received(self, data: bytes) -> None:
        self._turn_bytes += len(data)
        self._received += len(data)
        if self._unparsed:
            self._unparsed += data
        else:
            self._parse(data)
        if self._turn_bytes >= TURN_BYTES:
            self._wait_for_turn()

    def _parse(self, data: bytes) -> None:
        """Have data parsed, as far as it goes in one turn."""
        if len(data) <= _SLICE_BYTES:
            while data and not self._deaf:
                data = self._feed(data)
            return
        until = time.monotonic() + _TURN_SECONDS
        for start in range(0, len(data), _SLICE_BYTES):
            if time.monotonic() > until or len(self._waiting) >= _MAX_PIPELINED:
                self._unparsed = data[start:]
                self._wait_for_turn()
                return
            part = data[start : start + _SLICE_BYTES]
            while part and not self._deaf:
                part = self._feed(part)
            if self._deaf:
                return

    def _wait_for_turn(self) -> None:
        if not self._resting and self._transport is not None and not self._transport.is_closing():
            self._resting = True
            self._transport.pause_reading()
            self._settings.turns.wait(self._turn)

    def _turn(self) -> None:
        """Go on: the others have had their turn."""
        self._resting, self._turn_bytes = False, 0
        if not self._broken and len(self._waiting) < _MAX_PIPELINED:
            self._listen()

    def _feed(self, data: bytes) -> bytes:
        """Have data parsed; return what has to be parsed anew."""
        headers, seen = self._headers, self._header_bytes + self._body_bytes
        try:
            self._parser.feed_data(data)
            if self._headers is headers and self._header_bytes + self._body_bytes == seen:
                self._count_unreported(len(data))
            else:
                self._unreported_bytes = 0
        except httptools.HttpParserUpgrade as error:
            return self._without_offer(data[error.args[0] :])
        except (httptools.HttpParserError, _RefusedError) as error:
            cause = error if isinstance(error, _RefusedError) else error.__context__
            if isinstance(cause, _RefusedError):
                self._refuse(cause.status, str(cause))
            else:
                self._refuse(400, "malformed HTTP request")
        return b""

    def _without_offer(self, rest: bytes) -> bytes:
        """Return a request without the other protocol that it offers, and what follows it.

        A server may go on as if there were no offer (RFC 9110, 7.8). Some clients offer HTTP/2 with each request.
        """
        if self._parser.get_method() == b"CONNECT":
            self._refuse(400, "this server is no proxy")
            return b""
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
        self._begun = True
        if self._task is None and self._timer is not None:  # the wait for it is over, and its own time begins
            self._set_timer()

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
            raise _RefusedError(error.status, str(error)) from None

    def on_headers_complete(self) -> None:
        self._head_done = True
        self._check_framing()
        length = self._headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > self._settings.max_body_bytes:
            raise _RefusedError(
                413, f"the body is larger than {self._settings.max_body_bytes} bytes (--max-request-bytes)"
            )
        if length.isdigit() and not self._settings.bodies.has(int(length)):
            raise self._no_room()
        expects = self._headers.get(b"expect", b"").lower() == b"100-continue" and not self._is_old()
        if expects and self._transport is not None:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _is_old(self) -> bool:
        return bool(self._parser.get_http_version() == "1.0")

    def _check_framing(self) -> None:
        """Refuse what a proxy in between may understand in another way."""
        version = self._parser.get_http_version()
        if version not in _VERSIONS:
            raise _RefusedError(505, f"this server speaks HTTP/1.1, not {version}")
        coding = self._headers.get(b"transfer-encoding")
        if coding is None:
            return
        if self._is_old():
            raise _RefusedError(400, "HTTP/1.0 has no transfer-encoding")
        if coding.strip().lower() != b"chunked":
            raise _RefusedError(501, f"the only transfer-encoding here is chunked: {coding[:40].decode('latin-1')}")

    def on_body(self, data: bytes) -> None:
        self._body_bytes += len(data)
        if self._body_bytes > self._settings.max_body_bytes:
            raise _RefusedError(
                413, f"the body is larger than {self._settings.max_body_bytes} bytes (--max-request-bytes)"
            )
        if not self._settings.bodies.take(len(data)):
            raise self._no_room()
        self._taken += len(data)
        if len(data) >= _SMALL_PIECE_BYTES:
            self._body.append(data)
        elif self._body and isinstance(self._body[-1], bytearray):
            self._body[-1] += data
        else:
            self._body.append(bytearray(data) if self._body else data)

    def _no_room(self) -> _RefusedError:
        most = self._settings.bodies.max_bytes
        return _RefusedError(503, f"all bodies together are larger than {most} bytes (--max-bodies-bytes); try again")

    def on_message_complete(self) -> None:
        if self._parser.should_upgrade():
            return  # without its body: `_without_offer` has it parsed again
        target = _ORIGIN.sub(b"", self._url, count=1) if self._url[:1] != b"/" else self._url
        path = (target.partition(b"?")[0] or b"/").decode("ascii", "replace")
        first = self._body[0] if len(self._body) == 1 else b""
        body = first if isinstance(first, bytes) and first else b"".join(self._body)
        coding = body_coding(self._headers)
        request = Request(self._parser.get_method().decode(), path, self._headers, body, self._local, coding)
        keep = self._parser.should_keep_alive()
        request.old = self._is_old()
        self._deaf = not keep
        self._reset()
        self._waiting.append((request, keep))
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._task is None:
            self._task = self._loop.create_task(self._answer_all())
        elif len(self._waiting) >= _MAX_PIPELINED and self._transport is not None:
            self._transport.pause_reading()

    def _count_header(self, size: int) -> None:
        self._header_bytes += size
        if self._header_bytes > _MAX_HEADER_BYTES:
            raise _RefusedError(431, "the headers are too large")

    def _count_unreported(self, size: int) -> None:
        """The parser keeps a header until it is whole, however long it is."""
        self._unreported_bytes += size
        if self._unreported_bytes > _MAX_HEADER_BYTES:
            raise _RefusedError(431, "the headers are too large")

    # answering

    async def _answer_all(self) -> None:
        try:
            while self._waiting and not self._broken:
                await self._until_writable()
                request, keep = self._waiting.popleft()
                response = await self._handler(request)
                keep = keep and not self._draining
                if keep and request.old:
                    response.headers["Connection"] = "keep-alive"
                if len(response.body) >= _GZIP_FROM_BYTES and accepts_gzip(request.headers):
                    await self._pack(response)
                self._write(response, keep=keep, with_body=request.method != "HEAD")
                self._give_back(len(request.body))
                if not keep:
                    self._linger()
                elif len(self._waiting) < _MAX_PIPELINED:  # else the next read would bring thousands more
                    self._listen()
                if self._waiting:
                    await asyncio.sleep(0)  # others have requests too, and this client may have gone
            if self._refusal is not None:
                self._write(self._refusal, keep=False)
                self._linger()
        except _StalledError:
            self._abort()
        except Exception:  # a defect: whoever waits must not wait for an answer that will not come
            self._close()
            raise
        finally:
            self._task = None
        self._rest()

    def _listen(self) -> None:
        transport = self._transport
        if transport is None or transport.is_closing() or self._writable is not None or self._resting:
            return
        if self._unparsed and not self._deaf:
            data, self._unparsed = self._unparsed, b""
            self._parse(data)
        if not self._unparsed and not self._resting and not transport.is_reading():
            transport.resume_reading()

    async def _until_writable(self) -> None:
        """Answer no more while the client takes nothing of what it has; it must take something before long."""
        if self._writable is not None and not self._writable.done():
            done, _ = await asyncio.wait([self._writable], timeout=self._settings.idle_seconds)
            if not done:
                raise _StalledError

    async def _pack(self, response: Response) -> None:
        def packed() -> bytes:
            packer = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, 31)
            return packer.compress(response.body) + packer.flush()

        large = len(response.body) > _QUICK_GZIP_BYTES
        response.body = await self._loop.run_in_executor(None, packed) if large else packed()
        response.headers["Content-Encoding"] = "gzip"

    def _give_back(self, size: int) -> None:
        size = min(size, self._taken)
        self._taken -= size
        self._settings.bodies.give_back(size)
        self._settings.heap.freed(size)

    def _write(self, response: Response, *, keep: bool, with_body: bool = True) -> None:
        if self._transport is None or self._broken:
            return
        body, extra = response.body, ""
        for name, value in response.headers.items():
            extra += f"{name}: {value}\r\n"
        if not keep:
            extra += "Connection: close\r\n"
        head = (
            f"HTTP/1.1 {response.status} {_REASONS.get(response.status, 'Unknown')}\r\n"
            f"Content-Type: {response.content_type}\r\nContent-Length: {len(body)}\r\n{extra}\r\n"
        )
        self._transport.write(head.encode() + body if with_body else head.encode())
        self._settings.heap.freed(len(body))

    def _refuse(self, status: int, text: str) -> None:
        """Answer what cannot be parsed and close: where the next request begins is unknown."""
        if self._deaf:  # it came behind the last request
            return
        self._deaf = True
        self._give_back(self._body_bytes)
        self._reset()
        self._refusal = Response(status, self._settings.error_body(text))
        if self._task is None:
            self._task = self._loop.create_task(self._answer_all())

    def _rest(self) -> None:
        """Wait for the next request, or for the rest of one, but not for ever."""
        if self._broken:
            return
        if self._draining:
            self._close()
        else:
            self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._received_before = self._received
        self._timer = self._loop.call_later(self._settings.idle_seconds, self._time_is_up)

    def _time_is_up(self) -> None:
        """End a connection that is not used, or whose request does not come; a slow one may go on."""
        if not self._begun:
            self._close()
        elif self._received - self._received_before >= _PROGRESS_BYTES:
            self._set_timer()
        else:
            self._refuse(408, f"the request did not come in time ({self._settings.idle_seconds:g} s)")

    def _close(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.close()
            # What the client never takes is dropped after as long again.
            self._timer = self._loop.call_later(self._settings.idle_seconds, self._abort)

    def _abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _linger(self) -> None:
        """Close behind an answer that the client may still have to find: what it goes on to send is dropped."""
        if self._transport is not None and not self._broken:
            self._deaf = self._broken = True
            self._lingering = Lingering(
                self._transport, self.connection_lost, self._settings.turns, hurry=self._draining
            )

    def drain(self) -> None:
        """Close after the requests that are already here."""
        self._draining = True
        if self._lingering is not None:
            self._lingering.hurry()
        elif self._task is None:
            self._close()


class _RefusedError(Exception):
    def __init__(self, status: int, text: str) -> None:
        self.status = status
        super().__init__(text)


class _StalledError(Exception):
    """The client takes nothing."""
