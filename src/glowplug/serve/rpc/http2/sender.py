"""The sending half of a connection: frames within the peer's windows, and patience with a peer that does not read.

The answer of a unary call that fits leaves in one write; what does not fit waits in its stream.
"""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from collections.abc import Callable

from .frames import (
    DATA,
    DEFAULT_TABLE_SIZE,
    END_HEADERS,
    END_STREAM,
    FIRST_WINDOW,
    HEAD,
    HEADERS,
    MAX_WINDOW,
    SMALLEST_MAX_FRAME,
    BrokenConnectionError,
    BrokenStreamError,
    Code,
    frame,
)
from .stream import Stream

_TURN_BYTES = 1 << 18  # what one stream may send before the others have their turn
_JOIN_BYTES = 1 << 16  # up to here a copy is cheaper than a frame more
_LARGEST_FRAME = 1 << 20
_HIGH_WATER = 1 << 20
_STALL_SECONDS = 60.0
_TABLE_OFF = b"\x20"  # RFC 7541, 6.3: a dynamic table of size 0
PREFIX = struct.Struct(">BI")  # gRPC: whether the message is compressed, its length


class Answer:
    """A constant answer around a message: HEADERS, the heads of DATA and message, and trailers."""

    __slots__ = ("_close", "_closing", "_open", "_opening", "_sent_head", "head", "trailers")

    def __init__(self, head: bytes, trailers: bytes, prefix: bytes = b"") -> None:
        self.head, self.trailers = head, trailers
        self._sent_head = prefix + head
        size = len(self._sent_head)
        self._opening = HEAD.pack(size << 8 | HEADERS, END_HEADERS, 0)[:5]
        self._closing = HEAD.pack(len(trailers) << 8 | HEADERS, END_HEADERS | END_STREAM, 0)[:5]
        self._open = struct.Struct(f">5sI{size}sIBIBI").pack
        self._close = struct.Struct(f">5sI{len(trailers)}s").pack

    def around(self, number: int, message: bytes) -> bytes:
        """Return all frames of the answer of a stream."""
        size = len(message)
        opened = self._open(self._opening, number, self._sent_head, size + 5 << 8, 0, number, 0, size)
        return opened + message + self._close(self._closing, number, self.trailers)

    def with_table_off(self) -> Answer:
        """Return the same for a peer that shrank the table: it must be told that we follow."""
        return Answer(self.head, self.trailers, _TABLE_OFF)


class Sender:
    """Writes frames. `done` is called when a stream's answer is out, `earned` when the peer took something."""

    def __init__(self, answer: Answer, done: Callable[[Stream], None], earned: Callable[[int], None]) -> None:
        self._answer, self._done, self._earned = answer, done, earned
        self._transport: asyncio.Transport | None = None
        self._waiting: dict[int, Stream] = {}
        self.paused = False
        self._written = 0
        self._timer: asyncio.TimerHandle | None = None
        self._delivered = 0
        self._prefix = b""
        self._max_frame = SMALLEST_MAX_FRAME
        self._window = FIRST_WINDOW
        self.first_window: int = FIRST_WINDOW  # of a new stream

    def attach(self, transport: asyncio.Transport) -> None:
        """Begin to write to a transport."""
        transport.set_write_buffer_limits(_HIGH_WATER)
        self._transport = transport

    def detach(self) -> None:
        """Write no more."""
        self._transport = None
        self._waiting.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def write(self, data: bytes) -> None:
        """Write frames that no window bounds."""
        if self._transport is not None:
            self._written += len(data)
            self._transport.write(data)

    def answer(self, stream: Stream, message: bytes) -> None:
        """Send the whole good answer of a unary call."""
        size = len(message) + PREFIX.size
        transport = self._transport
        if (
            size <= self._window
            and size <= stream.window
            and size <= self._max_frame
            and not self.paused
            and transport is not None
        ):
            self._window -= size
            transport.write(self._answer.around(stream.number, message))
            self._done(stream)
            return
        self.head(stream, self._answer.head)
        self.data(stream, PREFIX.pack(0, len(message)), message, trailers=self._answer.trailers)

    def head(self, stream: Stream, block: bytes, *, last: bool = False) -> None:
        """Send a header block; `last` ends the stream."""
        self.write(frame(HEADERS, END_HEADERS | (END_STREAM if last else 0), stream.number, self._prefix + block))
        if last:
            self._done(stream)

    def data(self, stream: Stream, *pieces: bytes, trailers: bytes | None = None) -> None:
        """Send data as far as the windows allow and keep the rest; `trailers` end the stream behind it."""
        if stream.outgoing is None:
            stream.outgoing = deque()
        if sum(map(len, pieces)) <= _JOIN_BYTES:
            pieces = (b"".join(pieces),)
        stream.outgoing.extend(memoryview(piece) for piece in pieces if piece)
        stream.trailers = trailers
        self._waiting[stream.number] = stream
        self._send(stream)
        if self._waiting:
            self._watch()

    def forget(self, stream: Stream) -> None:
        """Drop what a stream still had to send."""
        self._waiting.pop(stream.number, None)

    def _send(self, stream: Stream) -> None:
        """Send all that may be sent: a peer whose windows are large enough says nothing more that we could wait for."""
        while self._advance(stream) and stream.number in self._waiting:
            pass

    def _advance(self, stream: Stream) -> bool:
        """Send what the stream may send in one turn; say whether anything was sent."""
        outgoing = stream.outgoing
        assert outgoing is not None
        sent = 0
        pieces: list[bytes | memoryview] = []
        while outgoing and sent < _TURN_BYTES and not self.paused:
            room = min(self._max_frame, self._window, stream.window)
            if room <= 0:
                break
            piece = outgoing.popleft()
            if len(piece) > room:
                outgoing.appendleft(piece[room:])
                piece = piece[:room]
            size = len(piece)
            pieces += (HEAD.pack(size << 8 | DATA, 0, stream.number), piece)
            self._window -= size
            stream.window -= size
            sent += size
        if sent and self._transport is not None:
            self._written += sent
            self._earned(1 + (sent >> 12))
            self._transport.writelines(pieces)
        if not outgoing:
            self._waiting.pop(stream.number, None)
            if stream.waiter is not None and not stream.waiter.done():
                stream.waiter.set_result(None)
            if stream.trailers is not None:
                self.head(stream, stream.trailers, last=True)
        return sent > 0

    def _pump(self) -> None:
        """Let every stream that waits send in turn, until nothing more can be sent."""
        moved = True
        while moved:
            moved = False
            for stream in list(self._waiting.values()):
                if self.paused or self._window <= 0:
                    return
                moved |= stream.window > 0 and self._advance(stream)

    # what the peer and the transport say

    def pause(self) -> None:
        """Wait: the transport holds enough."""
        self.paused = True
        self._watch()

    def resume(self) -> None:
        """Go on."""
        self.paused = False
        self._pump()

    def window_grew(self, increment: int) -> None:
        """Take more room for the whole connection."""
        self._window += increment
        if self._window > MAX_WINDOW:
            raise BrokenConnectionError(Code.FLOW_CONTROL_ERROR, "the window is too large")
        if self._waiting:
            self._pump()

    def stream_window_grew(self, stream: Stream, increment: int) -> None:
        """Take more room for one stream."""
        stream.window += increment
        if stream.window > MAX_WINDOW:
            raise BrokenStreamError(Code.FLOW_CONTROL_ERROR, "the window is too large")
        if stream.number in self._waiting:
            self._send(stream)

    def first_window_changed(self, value: int, streams: list[Stream]) -> None:
        """Move the window of every stream by as much as the setting moved."""
        change, self.first_window = value - self.first_window, value
        for stream in streams:
            stream.window += change
            if stream.window > MAX_WINDOW:
                raise BrokenConnectionError(Code.FLOW_CONTROL_ERROR, "the window is too large")
        if change > 0:
            self._pump()

    def max_frame_changed(self, value: int) -> None:
        """Learn how large a frame may be."""
        self._max_frame = min(value, _LARGEST_FRAME)

    def table_changed(self, value: int) -> None:
        """Learn how large the peer's table may be: we use none, but must say so where it shrank."""
        if value < DEFAULT_TABLE_SIZE and not self._prefix:
            self._prefix = _TABLE_OFF
            self._answer = self._answer.with_table_off()

    # a peer that asks and does not read

    def _watch(self) -> None:
        if self._timer is None:
            self._delivered = self._progress()
            self._timer = asyncio.get_running_loop().call_later(_STALL_SECONDS, self._check)

    def _progress(self) -> int:
        return self._written - (self._transport.get_write_buffer_size() if self._transport is not None else 0)

    def _check(self) -> None:
        self._timer = None
        if not (self._waiting or self.paused) or self._transport is None:
            return
        if self._progress() == self._delivered:
            self._transport.abort()
        else:
            self._watch()
