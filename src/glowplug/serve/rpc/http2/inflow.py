"""From bytes to frames: what a peer sends, cut into frames, a turn at a time so that the others have theirs.

What a frame means is not known here. Nothing is copied but frames that came in several parts.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from glowplug.serve.turns import TURN_BYTES, Turns

from . import frames
from .frames import BrokenConnectionError, Code

MAX_FRAME_BYTES = 1 << 16
_TURN_SECONDS = 0.001  # what one connection may do before the others have their turn

Take = Callable[[int, int, int, bytes, int, int], bool]  # type, flags, stream, data, start, stop: whether to go on


class Inflow:
    """The receiving end of one connection.

    `take` is given each whole frame and says whether more are wanted. `paused` says that the peer does not take what it
    is told, and is not listened to meanwhile. What was put off comes again through `again`.
    """

    def __init__(self, turns: Turns, take: Take, paused: Callable[[], bool], again: Callable[[bytes], None]) -> None:
        self._turns, self._take, self._paused, self._again = turns, take, paused, again
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._pending: list[bytes] = []  # the parts of a frame that is not whole, or of the preface
        self._missing = len(frames.PREFACE)
        self.greeted = False
        self._postponed: list[bytes] = []  # what came, and is taken in a later turn
        self._turn_bytes = 0  # received since it was this connection's turn
        self._resting = False  # until it is again

    def attach(self, transport: asyncio.Transport) -> None:
        """Begin to listen to a transport."""
        self._transport = transport

    def detach(self) -> None:
        """Listen no more, and forget what was put off."""
        self._transport = None
        self._postponed = []

    def receive(self, data: bytes) -> None:
        """Take what came; raises `BrokenConnectionError` where it breaks the protocol."""
        self._turn_bytes += len(data)
        if self._turn_bytes >= TURN_BYTES and not self._resting:
            self._resting = True
            self.stop_listening()
            self._turns.wait(self._turn)
        if self._postponed:
            self._postponed.append(data)
            return
        position = 0
        if not self.greeted:
            data = self._greet(b"".join([*self._pending, data]))
        while self._pending and self.greeted and position < len(data):  # of what was read, only a frame is copied
            part = data[position : position + self._missing]
            position += len(part)
            self._pending.append(part)
            self._missing -= len(part)
            if not self._missing:
                whole, self._pending = b"".join(self._pending), []
                if not self._cut(whole):
                    return
        if position < len(data):
            self._cut(data, position)

    def _greet(self, data: bytes) -> bytes:
        """Take the client's preface and return what comes behind it."""
        size = len(frames.PREFACE)
        if data[:size] != frames.PREFACE[: len(data)]:
            raise BrokenConnectionError(Code.PROTOCOL_ERROR, "this is not HTTP/2")
        if len(data) < size:
            self._pending = [data]
            return b""
        self.greeted, self._pending = True, []
        return data[size:]

    def _cut(self, data: bytes, position: int = 0) -> bool:
        """Cut data into frames; keep what is not yet a whole one, and what would keep others waiting.

        Says whether more is wanted.
        """
        end = len(data)
        unpack, clock, take = frames.HEAD.unpack_from, time.monotonic, self._take
        until = clock() + _TURN_SECONDS
        while end - position >= frames.HEAD_BYTES:
            word, flags, number = unpack(data, position)
            start = position + frames.HEAD_BYTES
            position = start + (word >> 8)
            if word >> 8 > MAX_FRAME_BYTES:
                raise BrokenConnectionError(Code.FRAME_SIZE_ERROR, "a frame is too large")
            if position > end:
                self._pending, self._missing = [data[start - frames.HEAD_BYTES :]], position - end
                return True
            if not take(word & 0xFF, flags, number & frames.MAX_STREAM_NUMBER, data, start, position):
                return False
            if position < end and (self._paused() or clock() > until):
                self._postpone(data[position:])
                return True
        if position < end:
            self._pending, self._missing = [data[position:]], frames.HEAD_BYTES - (end - position)
        return True

    def _turn(self) -> None:
        """Receive more: the others have had their turn."""
        self._resting, self._turn_bytes = False, 0
        self._listen()

    def _postpone(self, data: bytes) -> None:
        """Keep what came for a later turn, and let no more come before."""
        self.stop_listening()
        self._postponed.append(data)
        if not self._paused():
            self._loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        """Take what was put off, as far as it goes in one turn."""
        if self._paused():
            return
        data, self._postponed = b"".join(self._postponed), []
        self._again(data)
        self._listen()

    def resume(self) -> None:
        """Listen again to a peer that takes what it is told."""
        if self._postponed:
            self._loop.call_soon(self._go_on)
        self._listen()

    def _listen(self) -> None:
        """Read again, unless there is a reason not to."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if self._resting or self._postponed or self._paused():
            return
        transport.resume_reading()

    def stop_listening(self) -> None:
        """Read no more for now."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()
