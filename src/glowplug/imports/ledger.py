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
        _say(f"{part}: {text}")

    def tell(self, document: str | None) -> None:
        """Write everything to a file as JSON, or print it on stderr."""
        if document is not None:
            import json

            try:
                with open(document, "w", encoding="utf-8") as stream:  # noqa: PTH123 - pathlib may not be imported
                    json.dump({"run": [line._asdict() for line in self.lines]}, stream)
            except OSError as error:  # the program has ended as it should: this is said, and changes nothing
                _say(f"the document cannot be written: {document} ({error.strerror}); name another place")
            return
        for line in self.lines or (Line("run", "nothing to do: neither TensorFlow nor Keras was imported", {}),):
            _say(f"{line.part:<12} {line.text}")


def _say(text: str) -> None:
    if sys.stderr is not None:  # where it is closed, `print` would take the program's stdout
        print(f"glowplug: {text}", file=sys.stderr, flush=True)


def seconds(duration_ns: int) -> str:
    """Return a duration as the ledger writes it."""
    return f"{duration_ns / 1e9:.2f} s"
