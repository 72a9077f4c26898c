"""What stock code warns of while it traces is said again where the trace is restored.

Keras warns of a mask that a layer drops, or of inputs in another structure, when it traces a step. A program that
listens for that must hear it in every run, through its own filters. What cannot be said again refuses the entry.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from glowplug.train.fingerprint.errors import NoKeyError

Row = list[Any]  # text, module and name of the category, file, line, module


class Warned:
    """Notes the calls of `warnings.warn` by this thread inside a `with` block; with `silent`, nobody hears them."""

    def __init__(self, *, silent: bool = False) -> None:
        self._silent = silent
        self.rows: list[Row] = []
        self._refused = ""
        self._stock: Any = None
        self._thread = 0

    def __enter__(self) -> Warned:
        self._stock, self._thread = warnings.warn, threading.get_ident()
        warnings.warn = self._warn
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        warnings.warn = self._stock

    def found(self) -> list[Row]:
        """Return what is to be said again; raise `NoKeyError` if something cannot be."""
        if self._refused:
            raise NoKeyError(self._refused)
        return self.rows

    def _warn(self, message: Any, category: Any = None, stacklevel: int = 1, source: Any = None, **more: Any) -> None:
        if threading.get_ident() == self._thread:
            if self._silent:
                return
            self._note(message, category, stacklevel, more)
        self._stock(message, category, stacklevel + 1, source, **more)

    def _note(self, message: Any, category: Any, stacklevel: int, more: dict[str, Any]) -> None:
        kind: type[Warning] = type(message) if isinstance(message, Warning) else category or UserWarning
        frame = _frame_at(stacklevel) if type(stacklevel) is int else None
        module = frame.f_globals.get("__name__") if frame is not None else None
        if (
            more
            or frame is None
            or not isinstance(module, str)
            or _category(kind.__module__, kind.__qualname__) is not kind
        ):
            self._refused = (
                f"it warns while it is traced ({str(message)[:80]!r}), and not in a way that can be repeated"
            )
            return
        row = [str(message), kind.__module__, kind.__qualname__, frame.f_code.co_filename, frame.f_lineno, module]
        self.rows.append(row)


NOTES_WARNINGS = Warned._warn.__code__


def warn_again(rows: Sequence[Row]) -> None:
    """Warn as a trace did. What filters make an error of is raised."""
    for text, category_module, category_name, filename, line, module in rows:
        category = _category(category_module, category_name)
        if category is None:
            continue
        names = getattr(sys.modules.get(module), "__dict__", {})
        registry = names.setdefault("__warningregistry__", {})
        warnings.warn_explicit(text, category, filename, line, module, registry, names)


def _frame_at(stacklevel: int) -> Any:
    """Return the frame that a warning belongs to: that many calls above the one that warns."""
    frame = sys._getframe(2)  # of `_note` and `_warn`: the next one warns
    for _ in range(max(stacklevel, 1)):
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return frame


def _category(module: str, name: str) -> type[Warning] | None:
    found = getattr(sys.modules.get(module), name, None)
    return found if isinstance(found, type) and issubclass(found, Warning) else None
