"""What a connection keeps about one stream, and what it tells whoever answers it."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque


class Stream(ABC):
    """One request and its answer. Subclasses take what arrives; the connection owns the rest of the state."""

    __slots__ = ("number", "outgoing", "receivable", "received_all", "trailers", "waiter", "window")

    def __init__(self, number: int, window: int, receivable: int) -> None:
        self.number = number
        self.window = window  # bytes that the peer takes from us
        self.receivable = receivable  # bytes that we said we take
        self.received_all = False
        self.outgoing: deque[memoryview] | None = None  # what waits for the peer's window
        self.trailers: bytes | None = None  # the block to end with once that is out
        self.waiter: asyncio.Future[None] | None = None  # whoever waits for it

    @abstractmethod
    def begin(self) -> None:
        """Take the head of the request; `received_all` says whether that is all of it."""

    @abstractmethod
    def receive(self, data: bytes, start: int, stop: int, last: bool) -> None:
        """Take a part of the body: `data[start:stop]`."""

    @abstractmethod
    def end(self) -> None:
        """Learn that the request ended with trailers."""

    @abstractmethod
    def cancel(self) -> None:
        """Learn that nobody waits for the answer any more."""

    @abstractmethod
    def shut_down(self) -> None:
        """Learn that the server drains: end what would go on for ever."""
