"""What was applied to a start and what each part gave: collected while it happens, told at exit when asked for."""

from __future__ import annotations

import sys
from typing import NamedTuple


class Line(NamedTuple):
    """One thing that was done, or why it was not. `figures` are counts, and times in nanoseconds."""

    part: str
    text: str
    figures: dict[str, int]


class Ledger:
    """Collects lines. Notes about what could not be done are also said at once."""

    def __init__(self) -> None:
        self.lines: list[Line] = []

    def add(self, part: str, text: str, **figures: int) -> None:
        """Keep a line."""
        self.lines.append(Line(part, text, figures))

    def refuse(self, part: str, text: str) -> None:
        """Keep why a part does nothing, and tell the user."""
        self.add(part, text)
        print(f"glowplug: {part}: {text}", file=sys.stderr, flush=True)

    def tell(self, document: str | None) -> None:
        """Write everything to a file as JSON, or print it on stderr."""
        if document is not None:
            import json

            with open(document, "w", encoding="utf-8") as stream:  # noqa: PTH123 - pathlib may not be imported
                json.dump({"run": [line._asdict() for line in self.lines]}, stream)
            return
        for line in self.lines or (Line("run", "nothing to do: neither TensorFlow nor Keras was imported", {}),):
            print(f"glowplug: {line.part:<12} {line.text}", file=sys.stderr)


def seconds(duration_ns: int) -> str:
    """Return a duration as the ledger writes it."""
    return f"{duration_ns / 1e9:.2f} s"
