"""One HTTP/2 connection of a server: from frames to streams, with bounds on all that a peer can make us keep or do.

What a stream means is not known here: `Stream` is subclassed by the layer above.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from glowplug.serve.lingering import Lingering
from glowplug.serve.turns import Turns

from . import frames
from .frames import BrokenConnectionError, BrokenStreamError, Code
from .headers import MAX_BLOCK_BYTES, MAX_LIST_BYTES, Fields, HeaderReader
from .inflow import MAX_FRAME_BYTES, Inflow
from .noise import EARNED_BY_ANSWER, Noise
from .sender import Answer, Sender
from .stream import Stream

MAX_STREAMS = 1024
_HALF_WINDOW = frames.MAX_WINDOW // 2
_MAX_BLOCK_FRAMES = 32
_MAX_IGNORED = 256
_TINY_DATA_BYTES = 16  # a frame of data costs more than so much of it brings
_PREFACE_SECONDS = 10.0
_DRAIN_SECONDS = 1.0
_DRAIN_PING = b"draining"
_HELLO = frames.settings(
    {
        frames.MAX_CONCURRENT_STREAMS: MAX_STREAMS,
        frames.INITIAL_WINDOW_SIZE: frames.MAX_WINDOW,
        frames.MAX_FRAME_SIZE: MAX_FRAME_BYTES,
        frames.MAX_HEADER_LIST_SIZE: MAX_LIST_BYTES,
    }
) + frames.window_update(0, frames.MAX_WINDOW - frames.FIRST_WINDOW)
_ANY = -1

Head = TypeVar("Head")


@dataclass(frozen=True, slots=True)
class Application(Generic[Head]):
    """The layer above: reads heads, makes streams, has the constant parts of an answer, and is told of defects."""

    read_head: Callable[[Fields], Head]
    open_stream: Callable[[Connection[Head], int, Head], Stream]
    answer: Answer
    defect: Callable[[Exception], None]
    turns: Turns = field(default_factory=Turns)


class Connection(asyncio.Protocol, Generic[Head]):
    """One connection, from its preface to its end."""

    def __init__(self, application: Application[Head], connections: set[Connection[Head]]) -> None:
        self._application, self._connections = application, connections
        self._loop = asyncio.get_running_loop()
        self._headers = HeaderReader(application.read_head)
        self._noise = Noise(self._loop.time)
        self.sender = Sender(application.answer, self._finished, self._noise.earn)
        self._inflow = Inflow(application.turns, self._take, self._is_paused, self.data_received)
        self._open_stream = application.open_stream
        self._transport: asyncio.Transport | None = None
        self.peer = ""
        self._streams: dict[int, Stream] = {}
        self._last = 0
        self._skipped = range(0)  # numbers that the newest gap closed without a stream
        self._receivable = frames.MAX_WINDOW
        self._expected = frames.SETTINGS  # the only kind of frame that may come next, or `_ANY`
        self._block: tuple[int, int, bytearray] = (0, 0, bytearray())  # stream, flags, what came of it
        self._block_frames = 0
        self._ignored: dict[int, None] = {}  # streams that we ended while the peer may still be sending
        self._closing = False
        self._draining = False
        self._final = frames.MAX_STREAM_NUMBER  # streams above it are not taken any more
        self._timer: asyncio.TimerHandle | None = None
        self._lingering: Lingering | None = None

    # asyncio calls these

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        assert self._transport is not None
        self.peer = _peer_name(self._transport)
        self._connections.add(self)
        self._inflow.attach(self._transport)
        self.sender.attach(self._transport)
        self.sender.write(_HELLO)
        self._timer = self._loop.call_later(_PREFACE_SECONDS, self._transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.discard(self)
        self._transport = None
        self._end_streams()

    def pause_writing(self) -> None:
        """A peer that does not take what it is told is not listened to: acknowledgements and errors have no window."""
        self.sender.pause()
        self._inflow.stop_listening()

    def resume_writing(self) -> None:
        self.sender.resume()
        self._inflow.resume()

    def data_received(self, data: bytes) -> None:
        if self._closing:
            return
        try:
            self._inflow.receive(data)
        except BrokenConnectionError as error:
            self._close(error.code, str(error))
        except Exception as error:  # the process boundary
            self._application.defect(error)
            self._close(Code.INTERNAL_ERROR, "")

    def _is_paused(self) -> bool:
        return self.sender.paused

    def _take(self, kind: int, flags: int, number: int, data: bytes, start: int, stop: int) -> bool:
        """Take a frame; say whether the connection goes on."""
        if self._expected not in (kind, _ANY):
            raise BrokenConnectionError(Code.PROTOCOL_ERROR, f"a frame of type {kind} out of place")
        if kind >= len(_TAKERS):
            self._noise.ignored(stop - start)  # RFC 9113, 4.1: unknown types are ignored
            return True
        try:
            _TAKERS[kind](self, flags, number, data, start, stop)
        except BrokenStreamError as error:
            self._noise.count()
            self._reset(number, error.code)
        return not self._closing

    # frames of streams

    def _take_data(self, flags: int, number: int, data: bytes, start: int, stop: int) -> None:
        size = stop - start
        self._receivable -= size
        if self._receivable < _HALF_WINDOW:
            self._receivable = self._give_room(0, self._receivable)
        if flags & frames.PADDED:
            start, stop = frames.without_padding(flags, data, start, stop)
        stream = self._streams.get(number)
        if stream is None:
            self._check_not_idle(number)
            if number not in self._ignored:
                raise BrokenStreamError(Code.STREAM_CLOSED, "data on a closed stream")
            self._noise.dropped(size)
            return
        if stream.received_all:
            raise BrokenStreamError(Code.STREAM_CLOSED, "data behind the end")
        last = flags & frames.END_STREAM
        stream.receivable -= size
        if stream.receivable < _HALF_WINDOW and not last:
            stream.receivable = self._give_room(number, stream.receivable)
        if last:
            stream.received_all = True
        elif stop - start < _TINY_DATA_BYTES:
            self._noise.count()
        stream.receive(data, start, stop, last != 0)

    def _give_room(self, number: int, left: int) -> int:
        if left < 0:
            raise BrokenConnectionError(Code.FLOW_CONTROL_ERROR, "more data than was asked for")
        self.sender.write(frames.window_update(number, frames.MAX_WINDOW - left))
        return frames.MAX_WINDOW

    def _take_headers(self, flags: int, number: int, data: bytes, start: int, stop: int) -> None:
        if flags & (frames.PADDED | frames.WITH_PRIORITY):
            start, stop = frames.without_padding(flags, data, start, stop)
            if flags & frames.WITH_PRIORITY:
                if stop - start < 5:
                    raise BrokenConnectionError(Code.FRAME_SIZE_ERROR, "HEADERS without their priority")
                start += 5
        if not flags & frames.END_HEADERS:
            self._expected, self._block_frames = frames.CONTINUATION, 1
            self._block = (number, flags, bytearray(data[start:stop]))
            self._check_block()
            return
        self._take_block(flags, number, data[start:stop])

    def _take_continuation(self, flags: int, number: int, data: bytes, start: int, stop: int) -> None:
        if self._expected != frames.CONTINUATION or number != self._block[0]:
            raise BrokenConnectionError(Code.PROTOCOL_ERROR, "CONTINUATION of nothing")
        self._noise.count()
        self._block_frames += 1
        self._block[2].extend(data[start:stop])
        self._check_block()
        if flags & frames.END_HEADERS:
            self._expected = _ANY
            number, flags, block = self._block
            self._block = (0, 0, bytearray())
            self._take_block(flags, number, bytes(block))

    def _check_block(self) -> None:
        if len(self._block[2]) > MAX_BLOCK_BYTES or self._block_frames > _MAX_BLOCK_FRAMES:
            raise BrokenConnectionError(Code.ENHANCE_YOUR_CALM, "the header block is too large")

    def _take_block(self, flags: int, number: int, block: bytes) -> None:
        """Take a whole header block: the head of a new stream, or trailers."""
        if number <= self._last or not number & 1:
            self._take_trailers(flags, number, block)
            return
        if number != self._last + 2:
            self._skipped = range(self._last + 1 | 1, number, 2)
        self._last = number
        head, read = self._headers.request(block)
        if read:
            self._noise.block(len(block), read)
        if number > self._final:
            return
        if len(self._streams) >= MAX_STREAMS:
            raise BrokenStreamError(Code.REFUSED_STREAM, "too many streams")
        stream = self._streams[number] = self._open_stream(self, number, head)
        if flags & frames.END_STREAM:
            stream.received_all = True
        stream.begin()
        if self._draining:
            stream.shut_down()

    def _take_trailers(self, flags: int, number: int, block: bytes) -> None:
        if not number & 1:
            raise BrokenConnectionError(Code.PROTOCOL_ERROR, "a stream number that is not a client's")
        stream = self._streams.get(number)
        if stream is None and number in self._skipped:
            raise BrokenConnectionError(Code.PROTOCOL_ERROR, "a stream number below one that was opened")
        if number not in self._ignored if stream is None else stream.received_all:
            raise BrokenConnectionError(Code.STREAM_CLOSED, "HEADERS on a closed stream")
        self._noise.block(len(block), len(self._headers.trailers(block)))
        if stream is None:
            self._noise.count()
            return
        if not flags & frames.END_STREAM:
            raise BrokenStreamError(Code.PROTOCOL_ERROR, "trailers that do not end the stream")
        stream.received_all = True
        stream.end()

    def _take_priority(self, flags: int, number: int, data: bytes, start: int, stop: int) -> None:
        self._noise.count()
        if not number:
            raise BrokenConnectionError(Code.PROTOCOL_ERROR, "PRIORITY of no stream")
        if stop - start != 5:
            if number not in self._streams:
                raise BrokenConnectionError(Code.FRAME_SIZE_ERROR, "PRIORITY of a wrong size")
            raise BrokenStreamError(Code.FRAME_SIZE_ERROR, "PRIORITY of a wrong size")

    def _take_reset(self, flags: int, number: int, data: bytes, start: int, stop: int) -> None:
        self._noise.count()
        if stop - start != frames.WORD.size:
            raise BrokenConnectionError(Code.FRAME_SIZE_ERROR, "RST_STREAM of a wrong size")
        self._check_not_idle(number)
        self._ignored.pop(number, None)
        stream = self._streams.pop(number, None)
        if stream is not None:
            self._drop(stream)

    def _take_window_update(self, flags: int, number: int, data: bytes, start: int, stop: int) -> None:
        self._noise.count()
        if stop - start != frames.WORD.size:
            raise BrokenConnectionError(Code.FRAME_SIZE_ERROR, "WINDOW_UPDATE of a wrong size")
        increment = frames.WORD.unpack_from(data, start)[0] & frames.MAX_WINDOW
        if not number:
            if not increment:
                raise BrokenConnectionError(Code.PROTOCOL_ERROR, "WINDOW_UPDATE by nothing")
            self.sender.window_grew(increment)
            return
        self._check_not_idle(number)
        stream = self._streams.get(number)
        if stream is not None:
            if not increment:
                raise BrokenStreamError(Code.PROTOCOL_ERROR, "WINDOW_UPDATE by nothing")
            self.sender.stream_window_grew(stream, increment)

    def _check_not_idle(self, number: int) -> None:
        if number > self._last or not number & 1:
            raise BrokenConnectionError(Code.PROTOCOL_ERROR, "a frame on a stream that was never opened")

    # frames of the connection

    def _take_settings(self, flags: int, number: int, data: bytes, start: int, stop: int) -> None:
        self._noise.settings((stop - start) // frames.SETTING.size, len(self._streams))
        if number:
            raise BrokenConnectionError(Code.PROTOCOL_ERROR, "SETTINGS on a stream")
        if flags & frames.ACK:
            if start != stop:
                raise BrokenConnectionError(Code.FRAME_SIZE_ERROR, "an acknowledgement with content")
            if self._expected != _ANY:
                raise BrokenConnectionError(Code.PROTOCOL_ERROR, "an acknowledgement before SETTINGS")
            return
        if self._expected != _ANY:
            self._expected = _ANY
            self._cancel_timer()
        for key, value in dict(frames.read_settings(data[start:stop])).items():  # the last of each counts
            if key == frames.INITIAL_WINDOW_SIZE:
                self.sender.first_window_changed(value, list(self._streams.values()))
            elif key == frames.MAX_FRAME_SIZE:
                self.sender.max_frame_changed(value)
            elif key == frames.HEADER_TABLE_SIZE:
                self.sender.table_changed(value)
        self.sender.write(frames.frame(frames.SETTINGS, frames.ACK, 0))

    def _take_push_promise(self, flags: int, number: int, data: bytes, start: int, stop: int) -> None:
        raise BrokenConnectionError(Code.PROTOCOL_ERROR, "a client cannot promise")

    def _take_ping(self, flags: int, number: int, data: bytes, start: int, stop: int) -> None:
        self._noise.count()
        if number:
            raise BrokenConnectionError(Code.PROTOCOL_ERROR, "PING on a stream")
        if stop - start != 8:
            raise BrokenConnectionError(Code.FRAME_SIZE_ERROR, "PING of a wrong size")
        if not flags & frames.ACK:
            self.sender.write(frames.frame(frames.PING, frames.ACK, 0, data[start:stop]))
        elif self._draining and data[start:stop] == _DRAIN_PING:
            self._finish_draining()

    def _take_goaway(self, flags: int, number: int, data: bytes, start: int, stop: int) -> None:
        self._noise.ignored(stop - start)
        if number:
            raise BrokenConnectionError(Code.PROTOCOL_ERROR, "GOAWAY on a stream")
        if stop - start < frames.LAST_AND_CODE.size:
            raise BrokenConnectionError(Code.FRAME_SIZE_ERROR, "GOAWAY of a wrong size")

    # the end of streams

    def _finished(self, stream: Stream) -> None:
        """The answer of a stream is out."""
        number = stream.number
        if self._streams.pop(number, None) is None:
            return
        self._noise.earn(EARNED_BY_ANSWER)
        if not stream.received_all:  # RFC 9113, 8.1: the rest of the request is not needed
            self._ignore(number)
            self.sender.write(frames.reset(number, Code.NO_ERROR))
        if self._draining:
            self._close_when_idle()

    def _reset(self, number: int, code: Code) -> None:
        """End a stream with an error, whether it is open or not."""
        self._ignore(number)
        self.sender.write(frames.reset(number, code))
        stream = self._streams.pop(number, None)
        if stream is not None:
            self._drop(stream)

    def _drop(self, stream: Stream) -> None:
        self.sender.forget(stream)
        stream.cancel()
        if self._draining:
            self._close_when_idle()

    def _ignore(self, number: int) -> None:
        self._ignored[number] = None
        if len(self._ignored) > _MAX_IGNORED:
            del self._ignored[next(iter(self._ignored))]

    # the end of the connection

    def _close(self, code: Code, text: str) -> None:
        """Say why, and close once that is out."""
        if self._transport is not None and not self._closing:
            self.sender.write(frames.goaway(self._last, code, text))
            self._linger()

    def _linger(self) -> None:
        """Close behind what was written: what the peer goes on to send is dropped."""
        assert self._transport is not None
        self._end_streams()
        self._lingering = Lingering(
            self._transport, self.connection_lost, self._application.turns, hurry=self._draining
        )

    def _end_streams(self) -> None:
        """Nothing can be answered any more."""
        self._closing = True
        self._cancel_timer()
        self._inflow.detach()
        self.sender.detach()
        streams, self._streams = self._streams, {}
        for stream in streams.values():
            stream.cancel()

    def drain(self) -> None:
        """Take no more streams, and close after those that are here.

        A client that opens a stream while we say so must not lose it, so the last number is said a round trip later.
        """
        if self._lingering is not None:
            self._lingering.hurry()
        if self._draining or self._closing or self._transport is None:
            return
        self._draining = True
        for stream in list(self._streams.values()):
            stream.shut_down()
        if not self._inflow.greeted or not self._last:
            self._close(Code.NO_ERROR, "")
            return
        self.sender.write(frames.goaway(frames.MAX_STREAM_NUMBER, Code.NO_ERROR))
        self.sender.write(frames.frame(frames.PING, 0, 0, _DRAIN_PING))
        self._cancel_timer()
        self._timer = self._loop.call_later(_DRAIN_SECONDS, self._finish_draining)

    def _finish_draining(self) -> None:
        if self._final != frames.MAX_STREAM_NUMBER:
            return
        self._final = self._last
        self._cancel_timer()
        self.sender.write(frames.goaway(self._final, Code.NO_ERROR))
        self._close_when_idle()

    def _close_when_idle(self) -> None:
        if self._final != frames.MAX_STREAM_NUMBER and not self._streams and not self._closing:
            self._linger()

    def abort(self) -> None:
        """End at once."""
        if self._transport is not None:
            self._transport.abort()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


# By type of frame. PRIORITY carries nothing that is still in use (RFC 9113, 5.3).
_TAKERS: tuple[Callable[[Connection[Any], int, int, bytes, int, int], None], ...] = (
    Connection._take_data,
    Connection._take_headers,
    Connection._take_priority,
    Connection._take_reset,
    Connection._take_settings,
    Connection._take_push_promise,
    Connection._take_ping,
    Connection._take_goaway,
    Connection._take_window_update,
    Connection._take_continuation,
)


def _peer_name(transport: asyncio.Transport) -> str:
    """Return who is at the other end, as gRPC writes it; keep the line alive where it is a network's."""
    line, peer = transport.get_extra_info("socket"), transport.get_extra_info("peername")
    if line is None or line.family == socket.AF_UNIX:
        return "unix:"
    with contextlib.suppress(OSError):
        line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if line.family == socket.AF_INET6:
        return f"ipv6:[{peer[0]}]:{peer[1]}"
    return f"ipv4:{peer[0]}:{peer[1]}"
