"""HTTP/1.1 over asyncio: one connection, its requests in order, bounds on everything that is kept.

httptools parses (`reading`); what is left is small, and far faster than a framework around it.
"""

from __future__ import annotations

import asyncio
import time
import zlib
from collections import deque
from http import HTTPStatus

from glowplug.serve.lingering import Lingering
from glowplug.serve.turns import TURN_BYTES

from .exchange import Handler, HttpSettings, Request, Response
from .fields import accepts_gzip
from .reading import RefusedError, RequestParser

_MAX_PIPELINED = 16
_SLICE_BYTES = 1 << 14  # parsed at a time: it may be thousands of requests, or of chunks
_TURN_SECONDS = 0.002  # what one connection may have parsed before the others have their turn
_PROGRESS_BYTES = 1 << 20  # of a request, in the time in which a small one has to be there: bodies hold memory
_GZIP_FROM_BYTES = 1 << 12
_GZIP_LEVEL = 1
_QUICK_GZIP_BYTES = 1 << 18  # packing more takes milliseconds, and is done by a thread
_REASONS = {status.value: status.phrase for status in HTTPStatus} | {499: "Client Closed Request"}


class Connection(asyncio.Protocol):
    """One connection. Requests that come before an answer is out wait their turn."""

    def __init__(self, handler: Handler, settings: HttpSettings, open_connections: set[Connection]) -> None:
        self._handler, self._settings, self._open = handler, settings, open_connections
        self._loop = asyncio.get_running_loop()
        self._parser = RequestParser(self, settings)
        self._waiting: deque[tuple[Request, bool]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._lingering: Lingering | None = None
        self.local = False
        self._refusal: Response | None = None  # what to say behind the answers to the requests that wait
        self._draining = False
        self._deaf = False  # what is received means nothing any more
        self._broken = False  # nothing can be written any more
        self._received = 0
        self._received_before = 0  # when the timer was set
        self._turn_bytes = 0  # received since it was this connection's turn
        self._resting = False  # until it is again
        self._unparsed = b""  # what came, and is parsed in a later turn
        self._writable: asyncio.Future[None] | None = None  # set while the client takes nothing

    # asyncio calls these

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        peer = transport.get_extra_info("peername")
        self.local = not isinstance(peer, tuple) or peer[0] in ("127.0.0.1", "::1", "::ffff:127.0.0.1")
        self._open.add(self)
        self._rest()

    def connection_lost(self, exc: Exception | None) -> None:
        self._open.discard(self)
        self._deaf = self._broken = True
        self._waiting.clear()
        self._unparsed = b""
        self._parser.forget_all()
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
        try:
            return self._parser.feed(data)
        except RefusedError as error:
            self._refuse(error.status, str(error))
            return b""

    # the parser calls these

    def begun(self) -> None:
        if self._task is None and self._timer is not None:  # the wait for it is over, and its own time begins
            self._set_timer()

    def go_on(self) -> None:
        if self._transport is not None:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def complete(self, request: Request, *, keep: bool) -> None:
        self._deaf = not keep
        self._waiting.append((request, keep))
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._task is None:
            self._task = self._loop.create_task(self._answer_all())
        elif len(self._waiting) >= _MAX_PIPELINED and self._transport is not None:
            self._transport.pause_reading()

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
                self._parser.give_back(len(request.body))
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
        self._parser.forget()
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
        if not self._parser.has_begun:
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


class _StalledError(Exception):
    """The client takes nothing."""
