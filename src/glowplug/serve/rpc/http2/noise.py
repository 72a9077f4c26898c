"""What a peer may send without asking for anything: counted in frames, in bytes and in fields, for a while at a time.

A unit is about the work of taking one small frame. What a frame carries counts beside it: a frame of settings holds
thousands of them, a header block hundreds of fields, and either costs as much as hundreds of pings.
"""

from __future__ import annotations

from collections.abc import Callable

from .frames import BrokenConnectionError, Code

MAX_UNITS, SECONDS = 10_000, 10.0
EARNED_BY_ANSWER = 8
_IGNORED_BYTES = 1 << 10  # of a frame that is thrown away, for a unit
_DROPPED_BYTES = 1 << 14  # of a body that nobody wants any more, for a unit: its sender may not know yet
_STREAMS = 16  # open streams whose window a setting moves, for a unit
_FREE_FIELDS, _FREE_BLOCK_BYTES, _BLOCK_BYTES = 64, 1 << 12, 1 << 5  # of a header block; what is above counts


class Noise:
    """The account of one connection. Answers that the peer takes earn some of it back."""

    __slots__ = ("_clock", "_since", "_units")

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._units, self._since = clock, 0, clock()

    def count(self, units: int = 1) -> None:
        """Count work that brings nothing; above the bound the connection ends."""
        self._units += units
        if self._units > MAX_UNITS:
            now = self._clock()
            if now - self._since < SECONDS:
                raise BrokenConnectionError(Code.ENHANCE_YOUR_CALM, "too much that asks for nothing")
            self._units, self._since = units, now

    def ignored(self, size: int) -> None:
        """Count a frame whose content is thrown away."""
        self.count(1 + size // _IGNORED_BYTES)

    def dropped(self, size: int) -> None:
        """Count data for a stream that has ended."""
        self.count(1 + size // _DROPPED_BYTES)

    def settings(self, entries: int, streams: int) -> None:
        """Count a frame of settings; a new window is work for each open stream."""
        self.count(1 + entries + streams // _STREAMS)

    def block(self, size: int, fields: int) -> None:
        """Count what a header block has beyond that of any usual call."""
        units = max(0, fields - _FREE_FIELDS) + max(0, size - _FREE_BLOCK_BYTES) // _BLOCK_BYTES
        if units:
            self.count(units)

    def earn(self, units: int) -> None:
        """The peer took an answer."""
        if self._units:
            self._units = max(0, self._units - units)
