"""What passes between an HTTP connection and whoever answers its requests, and the bounds of both."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from glowplug.serve.heap import Heap
from glowplug.serve.turns import Turns


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
