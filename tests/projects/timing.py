"""Times a packed model against stock TensorFlow: each in a process of its own, the steady calls of both in turns.

Stock TensorFlow's is fresh, or a fork of one that has imported TensorFlow, which spares the import for each model: what
it answers first is then told without the import.

Turns, because a machine that is busy is so for both sides then: their ratio means something where the seconds do not.
How much of the machine others used meanwhile is measured, too.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import psutil

SIDES = ("stock", "glowplug")
TURNS = 5
SECONDS = 600
ROW = "row: "


class Side(Protocol):
    """A process that answers first, and then again whenever it is asked."""

    def answer(self) -> Any:
        """Return what the process says next, or None if it has died."""

    def ask(self) -> float:
        """Return how long another call takes."""

    def close(self) -> str:
        """End the process, and return how it ended."""


class Fresh:
    """A process of its own."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], *, limited: bool = True) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )
        self.errors: list[str] = []
        self._reader = threading.Thread(target=self._read_errors, daemon=True)
        self._reader.start()
        self._late = threading.Timer(SECONDS, self.process.kill)
        if limited:
            self._late.start()

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.errors = [*self.errors[-4:], line.strip()]

    def answer(self) -> Any:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(ROW):
                return json.loads(line.removeprefix(ROW))
        return None

    def ask(self) -> float:
        self.write("again")
        return float(self.answer())

    def write(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def close(self) -> str:
        assert self.process.stdin is not None
        self.process.stdin.close()
        code = self.process.wait()
        self._late.cancel()
        self._reader.join()
        return f"exit code {code}: {(self.errors or [''])[-1][:200]}"


class Forks:
    """A process that has imported TensorFlow; each fork of it is a side."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._start = lambda: Fresh([*command, "--forks"], {**environment, "OPENBLAS_NUM_THREADS": "1"}, limited=False)
        self._parent: Fresh | None = None

    def side(self, folder: Path) -> Side:
        if self._parent is None or self._parent.process.poll() is not None:
            self._parent = self._start()
        self._parent.write(str(folder))
        return _Fork(self._parent)

    def used(self) -> float:
        """Return the processor time of the forks that have ended."""
        if self._parent is None or self._parent.process.poll() is not None:
            return 0.0
        seen = psutil.Process(self._parent.process.pid).cpu_times()
        return float(seen.children_user + seen.children_system)

    def close(self) -> None:
        if self._parent is not None:
            self._parent.close()


class _Fork:
    def __init__(self, parent: Fresh) -> None:
        self._parent = parent
        self._ended: str | None = None
        self._late = threading.Timer(SECONDS, parent.process.kill)
        self._late.start()

    def answer(self) -> Any:
        found = self._parent.answer()
        if isinstance(found, dict) and "ended" in found:
            self._ended = f"exit code {found['ended']}: {(self._parent.errors or [''])[-1][:200]}"
            return None
        if found is None:
            self._ended = "it was killed, or took too long"
        return found

    def ask(self) -> float:
        self._parent.write("again")
        return float(self.answer())

    def close(self) -> str:
        if self._ended is None:
            self._parent.write("end")
            self.answer()
        self._late.cancel()
        return self._ended or "it does not end"


def times(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], forks: Forks | None = None
) -> dict[str, Any]:
    """Return, for each side, when it first answered and how long a later call takes; and what others used."""
    used = _Used(forks)
    sides: dict[str, Side] = {}
    found: dict[str, Any] = {"after_import": forks is not None}
    try:
        for name in SIDES:
            if forks is not None and name == "stock":
                sides[name] = forks.side(folder)
            else:
                sides[name] = Fresh([*command, "--first", name, str(folder)], environment)
            found[name] = sides[name].answer() or {}
        if all(found[name] for name in SIDES):
            turns = [[sides[name].ask() for name in SIDES] for _ in range(TURNS)]
            for name, seen in zip(SIDES, zip(*turns, strict=True), strict=True):
                found[name]["steady_s"] = statistics.median(seen)
            found["steady_ratio"] = statistics.median(ours / stock for stock, ours in turns)
    finally:
        for name, side in sides.items():
            last = side.close()
            if not found.get(name):
                found[name] = {"reason": last}
    found["others"] = round(used.by_others(), 2)
    return found


class _Used:
    """The share of the processors that processes other than this one's children and forks have used since."""

    def __init__(self, forks: Forks | None) -> None:
        self._forks = forks
        self._began, self._busy, self._own = time.monotonic(), _busy(), _own(forks)

    def by_others(self) -> float:
        available = (time.monotonic() - self._began) * (os.cpu_count() or 1)
        return max(_busy() - self._busy - (_own(self._forks) - self._own), 0.0) / available


def _busy() -> float:
    total = psutil.cpu_times()
    return float(sum(total) - total.idle - total.iowait - total.guest - total.guest_nice)


def _own(forks: Forks | None) -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime + (forks.used() if forks is not None else 0.0)
