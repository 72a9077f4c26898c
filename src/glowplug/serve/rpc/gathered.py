"""The parts of a message that takes more than a frame, joined once when it is whole."""

from __future__ import annotations

_SMALL_BYTES = 1 << 12  # an object for each part of a few bytes would take several times their room


class Gathered:
    """What came of a message behind its prefix, and of the prefix as long as that is not whole."""

    __slots__ = ("_parts", "prefix", "size")

    def __init__(self) -> None:
        self._parts: list[bytes | bytearray | memoryview] = []
        self.size = 0
        self.prefix: tuple[int, int] | None = None  # the flag, and the length of the message

    def add(self, part: bytes) -> None:
        """Add what came next."""
        self.size += len(part)
        if len(part) >= _SMALL_BYTES or not self._parts:
            self._parts.append(part)
        elif isinstance(last := self._parts[-1], bytearray):
            last += part
        else:
            self._parts.append(bytearray(part))

    def take(self, size: int) -> bytes:
        """Take so much from the beginning, of which there is at least as much."""
        self.size -= size
        first = memoryview(self._parts[0] if self._parts else b"")
        if len(first) > size:  # nothing else is copied where many messages come in one frame
            self._parts[0] = first[size:]
            return bytes(first[:size])
        whole = b"".join(self._parts)
        self._parts = [memoryview(whole)[size:]] if len(whole) > size else []
        return whole if len(whole) == size else whole[:size]

    def is_within(self) -> bool:
        """Say whether a message has begun that is not whole."""
        return self.size > 0 or self.prefix is not None
