"""Read what the shim recorded: the event files of a run, one stream for each process image.

The files come from processes that may have been killed at any point, so a stream ends at the first frame that is not
whole. `docs/reference/probe-events.md` describes the format.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BEGIN, END, SPAN, FACT, ROUND, OPS, ASSIGNED, EVENT = range(8)

Event = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Image:
    """The events of one program image of one process. A process that execs again has several."""

    pid: int
    start_ns: int
    events: tuple[Event, ...]

    def fact(self, key: str, default: Any = None) -> Any:
        """Return the last value recorded under a key."""
        found = default
        for event in self.events:
            if event[0] == FACT and event[1] == key:
                found = event[2]
        return found

    def facts(self, key: str) -> Iterator[Any]:
        """Yield every value recorded under a key."""
        return (event[2] for event in self.events if event[0] == FACT and event[1] == key)


def read_images(directory: Path) -> list[Image]:
    """Return the images of a run in order of their start."""
    chunks: dict[tuple[int, int], dict[int, Path]] = {}
    for path in directory.iterdir():
        parts = path.name.split(".")
        if len(parts) == 3 and all(part.isdigit() for part in parts):
            pid, start_ns, index = (int(part) for part in parts)
            chunks.setdefault((pid, start_ns), {})[index] = path
    images = []
    for (pid, start_ns), files in sorted(chunks.items(), key=lambda item: item[0][1]):
        events: list[Event] = []
        for index in sorted(files):
            events.extend(_read_frames(files[index].read_bytes()))
        images.append(Image(pid, start_ns, tuple(events)))
    return images


def _read_frames(data: bytes) -> Iterator[Event]:
    position, size = 0, len(data)
    while position + 4 <= size:
        length = int.from_bytes(data[position : position + 4], "little")
        if length == 0 or position + 4 + length > size:
            return
        try:
            event = marshal.loads(data[position + 4 : position + 4 + length])
        except (EOFError, ValueError, TypeError):
            return
        if isinstance(event, tuple) and event:
            yield event
        position += 4 + length
