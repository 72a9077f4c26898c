"""The time during which TensorFlow or Keras is being imported, and what is different while it lasts.

Each difference is undone when the outermost import ends, so that the program sees the library's and Python's own
functions. A module that is loaded late, because it was put off, opens the window again.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

Undo = Callable[[], None]
_FEW_OBJECTS = 100_000  # an interpreter begins with 5,000; numpy makes 15,000


class Window:
    """Counts nested imports; `opening` are called when the first begins, what they return when the last ends."""

    def __init__(self, opening: tuple[Callable[[], Undo | None], ...] = ()) -> None:
        self._opening = list(opening)
        self._undo: list[Undo] = []
        self._depth = 0
        self._lock = threading.RLock()

    def add(self, opening: Callable[[], Undo | None]) -> None:
        """Apply a difference now, if the window is open, and whenever it opens."""
        with self._lock:
            self._opening.append(opening)
            if self._depth:
                self._apply(opening)

    def enter(self) -> None:
        """An import begins."""
        with self._lock:
            self._depth += 1
            if self._depth == 1:
                for opening in self._opening:
                    self._apply(opening)

    def leave(self) -> None:
        """An import ends."""
        with self._lock:
            self._depth -= 1
            if self._depth == 0:
                while self._undo:
                    self._undo.pop()()

    def is_open(self) -> bool:
        """Say whether an import is under way."""
        return self._depth > 0

    def _apply(self, opening: Callable[[], Undo | None]) -> None:
        undo = opening()
        if undo is not None:
            self._undo.append(undo)


def swap(module: ModuleType, **replacements: Any) -> Undo:
    """Replace names of a module; return what puts back those that nobody has changed since."""
    names = vars(module)
    before = {name: names[name] for name in replacements}
    names.update(replacements)

    def restore() -> None:
        for name, value in before.items():
            if names.get(name) is replacements[name]:
                names[name] = value

    return restore


class Collector:
    """Puts garbage collection off: what an import makes stays, and looking at it again and again finds nothing.

    What there is when the first import has ended is left out of later collections. That is done once in a process, and
    not where the program has made a lot before: its own objects would be left out too.
    """

    def __init__(self) -> None:
        self._was_paused = False

    def pause(self) -> Undo | None:
        """Put collection off until the window closes; nothing is done where the program has switched it off itself."""
        is_first, self._was_paused = not self._was_paused, True
        if not gc.isenabled():
            return None
        freezes = is_first and len(gc.get_objects()) < _FEW_OBJECTS
        gc.disable()

        def resume() -> None:
            if freezes:
                gc.freeze()
            gc.enable()

        return resume
