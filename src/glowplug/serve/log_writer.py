"""Lines for a stream, written by a thread: whoever logs never waits for whoever reads.

What is held is bounded. A line for which there is no room is dropped, and how many were is said before the next one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TextIO

MAX_HELD = 1 << 20  # characters


class LineWriter:
    """Writes lines in their order. `note` makes the line that tells how many were dropped."""

    def __init__(self, stream: TextIO, note: Callable[[int], str]) -> None:
        self._stream, self._note = stream, note
        self._changed = threading.Condition()
        self._lines: list[str] = []
        self._held = self._dropped = 0
        self._writing = self._started = False

    def write(self, line: str) -> None:
        """Take a line to be written soon."""
        with self._changed:
            if self._held + len(line) > MAX_HELD:
                self._dropped += 1
                return
            self._lines.append(line)
            self._held += len(line)
            if not self._started:
                self._started = True
                threading.Thread(target=self._run, name="log", daemon=True).start()
            self._changed.notify_all()

    def flush(self, seconds: float) -> bool:
        """Wait until all is written, for at most so long; say whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: not (self._lines or self._dropped or self._writing), seconds)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._writing = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._lines or self._dropped)
                self._writing = True
                lines, dropped = self._lines, self._dropped
                self._lines, self._held, self._dropped = [], 0, 0
            if dropped:
                lines.append(self._note(dropped))
            write(self._stream, "\n".join(lines))


def write(stream: TextIO, text: str) -> None:
    """Write a line or several, unless nobody can take them: serving goes on."""
    try:
        stream.write(f"{text}\n")
        stream.flush()
    except (OSError, ValueError):
        return
