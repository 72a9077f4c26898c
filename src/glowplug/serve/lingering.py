"""The end of a connection whose peer may still be sending.

A socket that is closed with received bytes unread, or that receives more afterwards, answers with a reset. The peer
then fails in the middle of sending and may lose what it was told last. So we stop writing, go on reading and drop what
comes until the peer closes too: for a while, since a peer need not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from .turns import TURN_BYTES, Turns

_SILENCE_SECONDS = 1.0  # a peer that sends nothing for so long has sent everything, and closing harms nobody
_HURRIED_SECONDS = 0.1  # the same for a server that is about to end
_LONGEST_SECONDS = 5.0  # from when everything of ours is out
_STALL_SECONDS = 60.0  # a peer that takes nothing of what is left for it
_MAX_BYTES = 1 << 30


class Lingering(asyncio.Protocol):
    """Takes a transport over from the protocol that has written its last; `lost` is called when the connection is gone.

    Nothing may be written to the transport afterwards: it is shut down once everything before is out.
    """

    def __init__(
        self, transport: asyncio.Transport, lost: Callable[[Exception | None], None], turns: Turns, *, hurry: bool
    ) -> None:
        self._transport, self._lost, self._turns = transport, lost, turns
        self._loop = asyncio.get_running_loop()
        self._silence = _HURRIED_SECONDS if hurry else _SILENCE_SECONDS
        self._received = self._turn_ends = 0
        self._seen = (0, transport.get_write_buffer_size())
        self._moved_at = self._out_at = self._loop.time()
        self._timer = self._loop.call_later(self._silence, self._check)
        transport.set_protocol(self)
        if not transport.is_closing():
            if transport.can_write_eof():  # over TLS the end is part of closing
                transport.write_eof()
            else:
                self._silence = _HURRIED_SECONDS
            transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        """Drop it."""
        self._received += len(data)
        if self._received > _MAX_BYTES:
            self._transport.abort()
        elif self._received >= self._turn_ends and not self._transport.is_closing():
            self._transport.pause_reading()
            self._turns.wait(self._read_on)

    def _read_on(self) -> None:
        self._turn_ends = self._received + TURN_BYTES
        if not self._transport.is_closing():
            self._transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """Pass it on."""
        self._timer.cancel()
        self._lost(exc)

    def hurry(self) -> None:
        """Wait no longer than a server that ends can."""
        self._silence = _HURRIED_SECONDS
        self._timer.cancel()
        self._check()

    def _check(self) -> None:
        now, unsent = self._loop.time(), self._transport.get_write_buffer_size()
        if self._seen != (self._received, unsent):
            self._seen, self._moved_at = (self._received, unsent), now
        if unsent:
            self._out_at = now
        quiet = now - self._moved_at
        if quiet >= (_STALL_SECONDS if unsent else self._silence) or now - self._out_at >= _LONGEST_SECONDS:
            self._end(unsent)
        else:
            self._timer = self._loop.call_later(self._silence, self._check)

    def _end(self, unsent: int) -> None:
        if unsent or self._transport.can_write_eof():
            self._transport.abort()
        else:  # TLS says farewell first, and does not wait long for the peer's
            self._transport.close()
            self._timer = self._loop.call_later(_SILENCE_SECONDS, self._transport.abort)
