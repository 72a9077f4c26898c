"""One gRPC call on an HTTP/2 stream: its messages, its deadline, its handler and its status."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from glowplug.core.errors import GlowplugError, RequestError
from glowplug.serve.access import Gate
from glowplug.serve.heap import Heap
from glowplug.serve.log import Log
from glowplug.serve.wire.statuses import code_of

from .gathered import Gathered
from .http2.frames import MAX_WINDOW, BrokenStreamError, Code
from .http2.sender import PREFIX
from .http2.stream import Stream
from .methods import UNKNOWN_LENGTH, Head
from .wire import GZIP_HEAD, HEAD, OK, Unpacker, compressed, http_refusal, too_large, trailers

if TYPE_CHECKING:
    from .http2.connection import Connection

_COMPRESS_FROM_BYTES = 1 << 12
_QUICK_BYTES = 1 << 16  # so much is packed and unpacked while others wait
_STEP_BYTES = 1 << 22  # and so much at once in a thread
_MAX_WAITING_MESSAGES = 1000
_PROGRESS_BYTES = 1 << 20  # of a message, in the time in which a small one has to be there: what came of it is held

T = TypeVar("T")


@dataclass(slots=True)
class Bounds:
    """How large a message may be, how much all calls together may hold of messages that took more than a frame, by how
    much compressed ones may unfold together, and how long a message may take without coming closer to its end.
    """

    message_bytes: int
    together_bytes: int
    unfolded_bytes: int
    patience_s: float = 75.0
    heap: Heap = field(default_factory=Heap)
    held_bytes: int = 0
    held_unfolded_bytes: int = 0


class Call(Stream):
    """A call. What a handler sees of it: `head`, `peer`, `time_left`, and for streams `messages` and `send`."""

    __slots__ = (
        "_bounds",
        "_compressed",
        "_connection",
        "_deadline",
        "_done",
        "_gate",
        "_held",
        "_log",
        "_messages",
        "_reader",
        "_received",
        "_received_before",
        "_stalls",
        "_started",
        "_task",
        "_timer",
        "_unfinished",
        "_unfolded",
        "head",
        "outcome",
    )

    def __init__(
        self, connection: Connection[Head], number: int, head: Head, bounds: Bounds, log: Log, gate: Gate | None
    ) -> None:
        super().__init__(number, connection.sender.first_window, MAX_WINDOW)
        self._connection, self._bounds, self._log, self._gate = connection, bounds, log, gate
        self.head = head
        self.outcome = "CANCELLED"  # what a handler that is cancelled has to count
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._deadline: float | None = None
        self._unfinished: Gathered | None = None
        self._stalls: asyncio.TimerHandle | None = None  # set while a message is not whole
        self._received = self._received_before = self._held = self._unfolded = 0
        self._compressed = self._done = self._started = False
        self._messages: deque[tuple[bytes, bool]] | None = None  # whole ones, and whether they are compressed
        self._reader: asyncio.Future[None] | None = None

    @property
    def peer(self) -> str:
        """Who asks, as gRPC writes it."""
        return self._connection.peer

    def time_left(self) -> float | None:
        """Return the seconds until the deadline, `None` where there is none."""
        return None if self._deadline is None else max(0.0, self._deadline - asyncio.get_running_loop().time())

    def metadata(self, name: bytes) -> bytes:
        """Return the first field of that name, or nothing."""
        return next((value for key, value in self.head.metadata if key == name), b"")

    # the connection calls these

    def begin(self) -> None:
        """Take the head: refuse, or wait for the first message."""
        head = self.head
        if head.http_status:
            self._finish()
            self._connection.sender.head(self, http_refusal(head.http_status), last=True)
            return
        if head.error is not None:
            self._turn_away(head.error)
            return
        if self._gate is not None:
            try:
                self._gate.check(self.metadata(b"authorization"), head.method.scope)
            except RequestError as error:
                self._turn_away(error)
                return
        if head.timeout_s is not None:
            loop = asyncio.get_running_loop()
            self._deadline = loop.time() + head.timeout_s
            self._timer = loop.call_at(self._deadline, self._expire)
        if head.method.streaming is not None:
            self._messages = deque()
            self._task = asyncio.get_running_loop().create_task(self._stream())
        if self.received_all:
            self.end()

    def _turn_away(self, error: RequestError) -> None:
        """Refuse a call by its head. Those that are let in are logged by whoever answers them."""
        self._log.request("gRPC", self.head.path, error.code, 0.0, "")
        self.fail(error.code, str(error))

    def receive(self, data: bytes, start: int, stop: int, last: bool) -> None:
        """Take a part of the body. Nearly every call is one message in one frame."""
        size = stop - start
        if self._done:
            return
        if last and self._unfinished is None and size >= PREFIX.size and self._messages is None:
            flag, length = PREFIX.unpack_from(data, start)
            if not flag and length == size - PREFIX.size and self.head.length in (size, UNKNOWN_LENGTH):
                self._task = asyncio.get_running_loop().create_task(self._answer(data[start + PREFIX.size : stop]))
                return
        self._received += size
        try:
            self._collect(data[start:stop])
            self._watch()
            if last:
                self.end()
        except GlowplugError as error:
            self.fail(code_of(error), str(error))

    def _collect(self, part: bytes) -> None:
        """Add a part; take out every message that is whole. Nothing is kept of one that is too large."""
        held = self._unfinished
        if held is None:
            held = self._unfinished = Gathered()
        self._hold(len(part))
        held.add(part)
        while not self._done:
            if held.prefix is None:
                if held.size < PREFIX.size:
                    return
                held.prefix = PREFIX.unpack(held.take(PREFIX.size))
                self._hold(-PREFIX.size)
                if held.prefix[1] > self._bounds.message_bytes:
                    raise too_large(f"{held.prefix[1]} bytes", self._bounds.message_bytes)
            flag, length = held.prefix
            if held.size < length:
                return
            held.prefix = None
            self._take(held.take(length), bool(flag))

    def _watch(self) -> None:
        """See to it that a message which has begun comes to an end: others have no room for theirs meanwhile."""
        within = self._unfinished is not None and self._unfinished.is_within()
        if not within and self._stalls is not None:
            self._stalls.cancel()
            self._stalls = None
        elif within and self._stalls is None:
            self._received_before = self._received
            self._stalls = asyncio.get_running_loop().call_later(self._bounds.patience_s, self._time_is_up)

    def _time_is_up(self) -> None:
        """End a call whose message does not come; a slow one may go on."""
        self._stalls = None
        if self._received - self._received_before >= _PROGRESS_BYTES:
            self._watch()
        else:
            self.fail("DEADLINE_EXCEEDED", f"the message did not come in time ({self._bounds.patience_s:g} s)")

    def _hold(self, change: int) -> None:
        """Count what is held, which is given back when a message is taken or the call ends."""
        bounds = self._bounds
        if change > 0 and bounds.held_bytes + change > bounds.together_bytes:
            raise RequestError("large messages of other calls fill the memory", code="RESOURCE_EXHAUSTED")
        bounds.held_bytes += change
        self._held += change
        if change < 0:
            bounds.heap.freed(-change)

    def _take(self, message: bytes, packed: bool) -> None:
        if self._messages is None:
            self._messages = deque()
        self._messages.append((message, packed))
        if self.head.method.streaming is None:
            if len(self._messages) > 1:
                raise RequestError("this method takes one message", seen="another one", code="UNIMPLEMENTED")
        elif len(self._messages) > _MAX_WAITING_MESSAGES:
            raise RequestError("too many messages are waiting", code="RESOURCE_EXHAUSTED")
        self._wake()

    def end(self) -> None:
        """Take the end of the request."""
        if self._done:
            return
        if self.head.length not in (self._received, UNKNOWN_LENGTH):
            raise BrokenStreamError(Code.PROTOCOL_ERROR, "the body is not as long as was said")
        if self._unfinished is not None and self._unfinished.is_within():
            self.fail("INTERNAL", "the request ends within a message")
        elif self.head.method.streaming is not None:
            self._wake()
        elif self._messages:
            self._task = asyncio.get_running_loop().create_task(self._answer(*self._messages.popleft()))
        else:
            self.fail("UNIMPLEMENTED", "this method takes one message: got none")

    def cancel(self) -> None:
        """Stop: the client is gone, or does not want the answer any more."""
        self._finish()
        if self._task is not None:
            self._task.cancel()

    def shut_down(self) -> None:
        """End a stream that would go on for ever; calls with one answer are finished."""
        if self.head.method.streaming is not None:
            self.fail("UNAVAILABLE", "the server is shutting down")

    def _expire(self) -> None:
        self.outcome = "DEADLINE_EXCEEDED"
        self.fail("DEADLINE_EXCEEDED", "the deadline passed before the answer")

    # answering

    async def _answer(self, message: bytes, packed: bool = False) -> None:
        """Run a unary method."""
        assert self.head.method.unary is not None
        try:
            if packed:
                message = await self._unpacked(message)
            reply = await self.head.method.unary(message, self)
            compress = self._compressed and self.head.accepts_gzip and len(reply) >= _COMPRESS_FROM_BYTES
            if compress:
                reply = await _step(compressed, reply) if len(reply) > _QUICK_BYTES else compressed(reply)
        except GlowplugError as error:
            self.fail(code_of(error), str(error))
            return
        except Exception as error:  # the process boundary
            self._defect(error)
            return
        if self._done:
            return
        self._finish()
        self._bounds.heap.freed(len(reply))
        sender = self._connection.sender
        if compress:
            sender.head(self, GZIP_HEAD)
            sender.data(self, reply, trailers=OK)
        else:
            sender.answer(self, reply)

    async def _stream(self) -> None:
        """Run a streaming method."""
        assert self.head.method.streaming is not None
        try:
            await self.head.method.streaming(self)
        except GlowplugError as error:
            self.fail(code_of(error), str(error))
            return
        except Exception as error:  # the process boundary
            self._defect(error)
            return
        if not self._done:
            self._finish()
            self._connection.sender.head(self, OK if self._started else HEAD + OK, last=True)

    async def messages(self) -> AsyncIterator[bytes]:
        """Yield the messages of a streaming call as they come."""
        assert self._messages is not None
        while not self._done:
            while self._messages and not self._done:
                message, packed = self._messages.popleft()
                if packed:
                    message = await self._unpacked(message)
                if not self._done:
                    self._hold(-len(message))
                yield message
            if self.received_all:
                return
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader

    async def _unpacked(self, data: bytes) -> bytes:
        """Return what a compressed message holds; what that takes is held instead of the message. Raises where the
        bounds of one message or of all together are passed, before more is unpacked.
        """
        self._compressed = True
        limit = self._bounds.message_bytes
        unpacker = Unpacker(data, self.head.encoding)
        pieces, size = list[bytes](), 0
        while not unpacker.done:
            piece = await _step(unpacker.more, _STEP_BYTES) if size else unpacker.more(_QUICK_BYTES)
            if self._done:
                raise asyncio.CancelledError
            self._hold(len(piece))
            self._unfold(len(piece) if size else len(piece) - len(data))
            size += len(piece)
            if size > limit:
                raise too_large(f"more than {limit} bytes unpacked", limit)
            pieces.append(piece)
        self._hold(-len(data))
        return b"".join(pieces)

    def _unfold(self, change: int) -> None:
        """Count by how much compressed messages have grown, until the call ends."""
        bounds = self._bounds
        if change > 0 and bounds.held_unfolded_bytes + change > bounds.unfolded_bytes:
            raise RequestError(
                "compressed messages unfold to more than this server takes",
                seen=f"{bounds.unfolded_bytes} bytes more than was sent, of all calls together",
                remedy="send it uncompressed, or raise --max-request-bytes",
                code="RESOURCE_EXHAUSTED",
            )
        bounds.held_unfolded_bytes += change
        self._unfolded += change

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    async def send(self, message: bytes) -> None:
        """Send one message of a streaming call, and wait until the client has room for it."""
        if self._done:
            return
        sender = self._connection.sender
        if not self._started:
            self._started = True
            sender.head(self, HEAD)
        sender.data(self, PREFIX.pack(0, len(message)), message)
        if self.outgoing:
            self.waiter = asyncio.get_running_loop().create_future()
            await self.waiter

    def fail(self, code: str, text: str) -> None:
        """End the call with a status; a handler that still runs is stopped."""
        if self._done:
            return
        self._finish()
        sender = self._connection.sender
        block = trailers(code, text)
        if self.outgoing:  # a message is half out: the trailers follow it
            self.trailers = block
        else:
            sender.head(self, block if self._started else HEAD + block, last=True)
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()

    def _defect(self, error: Exception) -> None:
        self._log.event("defect", error=f"{type(error).__name__}: {error}", method=self.head.path)
        self.fail("INTERNAL", f"unexpected {type(error).__name__}")

    def _finish(self) -> None:
        """Take nothing more, and let go of what is held."""
        self._done = True
        for timer in (self._timer, self._stalls):
            if timer is not None:
                timer.cancel()
        if self._held:
            self._hold(-self._held)
        if self._unfolded:
            self._unfold(-self._unfolded)
        self._unfinished = None


async def _step(function: Callable[[T], bytes], argument: T) -> bytes:
    """Call a function of zlib's, which lets other threads run, in a thread."""
    return await asyncio.get_running_loop().run_in_executor(None, function, argument)
