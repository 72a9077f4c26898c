"""What verbs print: results on stdout, notes and progress on stderr."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from glowplug.core.clock import human_bytes, human_duration, now_ns

if TYPE_CHECKING:
    from glowplug.store.progress import Transfer

_CLEAR = "\r\x1b[K"
_WIDEST = 60  # characters of a column: one long name must not make a file of many short ones huge


def is_live() -> bool:
    """Say whether stderr is a terminal that can change a line that it shows."""
    return sys.stderr.isatty() and os.environ.get("TERM", "dumb") not in ("", "dumb")


def print_json(document: Any) -> None:
    """Print the one JSON document of a `--json` run."""
    print(json.dumps(document, indent=2, allow_nan=False))


def note(text: str) -> None:
    """Tell the user something that is no result."""
    print(text, file=sys.stderr, flush=True)


def quiet_tensorflow() -> None:
    """Let TensorFlow write errors only, unless the user chose otherwise: what is wrong is told by our own line."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


class Stages:
    """Shows each stage of a long run on stderr with its time: as it begins on a terminal, else when it has ended.

    No thread keeps the line moving: TensorFlow's notices can be held back only while there is one thread.
    """

    def __init__(self) -> None:
        self._live = is_live()
        self._stage: tuple[str, int] | None = None

    def __enter__(self) -> Stages:
        return self

    def __call__(self, stage: str) -> None:
        """End the stage before, and begin this one."""
        self._end()
        self._stage = (stage, now_ns())
        if self._live:
            self._write(f"{_CLEAR}  {stage} ...")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._end()
        elif self._live:
            self._write(_CLEAR)

    def _end(self) -> None:
        if self._stage is None:
            return
        stage, began = self._stage
        self._stage = None
        self._write(f"{_CLEAR if self._live else ''}  {stage:<28} {human_duration(now_ns() - began):>8}\n")

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()


class Percentage:
    """A live percentage on a terminal, and nothing elsewhere."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._live = is_live()
        self._shown = -1

    def __call__(self, done: int, total: int) -> None:
        """Show how far it is."""
        percent = 100 * done // total if total else 100
        if self._live and percent != self._shown:
            self._shown = percent
            sys.stderr.write(f"{_CLEAR}  {self._what} {percent} %")
            sys.stderr.flush()

    def clear(self) -> None:
        """Take the line away again."""
        if self._live:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()


class TransferLine:
    """How far a transfer is, at what rate, and how long the rest takes: live on a terminal, and nothing elsewhere."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._live = is_live()

    def __enter__(self) -> TransferLine:
        return self

    def __call__(self, transfer: Transfer) -> None:
        """Show the state of the transfer."""
        if not self._live:
            return
        total = transfer.total_bytes
        percent = 100 * transfer.done_bytes // total if total else 100
        left = "" if transfer.seconds_left is None else f", {human_duration(int(transfer.seconds_left * 1e9))} left"
        text = f"{self._what} {percent} % of {human_bytes(total)}, {human_bytes(int(transfer.bytes_per_s))}/s{left}"
        sys.stderr.write(f"{_CLEAR}  {text}")
        sys.stderr.flush()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()


def ago(moment_s: float) -> str:
    """Return how long ago a moment was, which counts from the epoch."""
    age = max(0.0, time.time() - moment_s)
    for unit, size in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if age >= 2 * size:
            return f"{age / size:.0f} {unit} ago"
    return "just now"


def table(rows: Sequence[tuple[str, ...]], *, indent: str = "  ") -> str:
    """Return rows of text in aligned columns. What is longer than most is not what the others are aligned with."""
    columns = range(len(rows[0])) if rows else ()
    widths = [min(max(len(row[column]) for row in rows), _WIDEST) for column in columns]
    return "\n".join(
        (indent + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))).rstrip()
        for row in rows
    )
