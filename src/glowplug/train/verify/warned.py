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

_lock = threading.Lock()
_listening: dict[int, list[Warned]] = {}  # by thread, the innermost last
_stock = warnings.warn


class Warned:
    """Notes the calls of `warnings.warn` by this thread inside a `with` block; with `silent`, nobody hears them."""

    def __init__(self, *, silent: bool = False) -> None:
        self.silent = silent
        self._rows: list[Row] = []
        self._refused = ""

    def __enter__(self) -> Warned:
        global _stock
        with _lock:
            if not _listening:
                _stock, warnings.warn = warnings.warn, _warn
            _listening.setdefault(threading.get_ident(), []).append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        thread = threading.get_ident()
        with _lock:
            _listening[thread].remove(self)
            if not _listening[thread]:
                del _listening[thread]
            if not _listening and warnings.warn is _warn:  # else somebody has replaced it meanwhile
                warnings.warn = _stock

    def found(self) -> list[Row]:
        """Return what is to be said again; raise `NoKeyError` if something cannot be."""
        if self._refused:
            raise NoKeyError(self._refused)
        return self._rows

    def note(self, message: Any, category: Any, frame: Any, more: dict[str, Any]) -> None:
        """Note a warning that belongs to a frame."""
        kind: type[Warning] = type(message) if isinstance(message, Warning) else category or UserWarning
        module = frame.f_globals.get("__name__") if frame is not None else None
        name = (kind.__module__, kind.__qualname__)
        if more or frame is None or not isinstance(module, str) or _category(*name) is not kind:
            self._refused = f"it warns while it is traced, and not in a way that can be repeated: {str(message)[:80]!r}"
            return
        self._rows.append([str(message), *name, frame.f_code.co_filename, frame.f_lineno, module])


def _warn(message: Any, category: Any = None, stacklevel: int = 1, source: Any = None, **more: Any) -> None:
    """Stand in for `warnings.warn` while somebody listens."""
    listening = _listening.get(threading.get_ident())
    if listening:
        if listening[-1].silent:
            return
        listening[-1].note(message, category, _frame_at(stacklevel), more)
    _stock(message, category, stacklevel + 1, source, **more)


NOTES_WARNINGS = _warn.__code__


def can_warn_again(rows: Any) -> bool:
    """Say whether these are rows that can be said again here."""
    return isinstance(rows, list) and all(
        isinstance(row, list)
        and [type(each) for each in row] == [str, str, str, str, int, str]
        and _category(row[1], row[2]) is not None
        for row in rows
    )


def warn_again(rows: Sequence[Row]) -> None:
    """Warn as a trace did. What filters make an error of is raised."""
    for text, category_module, category_name, filename, line, module in rows:
        names = getattr(sys.modules.get(module), "__dict__", {})
        registry = names.setdefault("__warningregistry__", {})
        category = _category(category_module, category_name)
        warnings.warn_explicit(text, category, filename, line, module, registry, names)


def _frame_at(stacklevel: Any) -> Any:
    """Return the frame that a warning belongs to, that many calls above the one that warns, if there is one."""
    if type(stacklevel) is not int:
        return None
    frame = sys._getframe(1)  # of `_warn`: the next one warns
    for _ in range(max(stacklevel, 1)):
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return frame


def _category(module: str, name: str) -> type[Warning] | None:
    found = getattr(sys.modules.get(module), name, None)
    return found if isinstance(found, type) and issubclass(found, Warning) else None
