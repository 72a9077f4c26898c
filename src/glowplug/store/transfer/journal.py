"""What a fetch has done so far, so that another process can go on from there when it is killed.

A line says of a part how many of its first bytes are on the disk, and their digest. Whoever goes on reads those bytes
and compares: the machine may have gone down with the line written and the bytes not.
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Begun:
    """How far a part is: its first `done` bytes, whose SHA-256 is `digest`."""

    done: int
    digest: str


class Journal:
    """The journal of one fetch, open for the length of a block. `begun` is what earlier attempts had done, by part."""

    def __init__(self, path: Path) -> None:
        self.begun = _read(path)
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)

    def note(self, part: str, begun: Begun) -> None:
        """Add a line; safe from many threads, since a write appends whole."""
        os.write(self._descriptor, json.dumps([part, begun.done, begun.digest]).encode() + b"\n")

    def drop(self, part: str) -> None:
        """Let nobody go on with a part."""
        self.note(part, Begun(0, ""))

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


def _read(path: Path) -> dict[str, Begun]:
    """Return the last line of each part; a line that is cut off is left out."""
    found: dict[str, Begun] = {}
    with contextlib.suppress(OSError):
        for line in path.read_bytes().splitlines():
            with contextlib.suppress(ValueError, TypeError):
                part, done, digest = json.loads(line)
                if type(done) is int:
                    found[str(part)] = Begun(done, str(digest))
    return {part: begun for part, begun in found.items() if begun.done > 0}
