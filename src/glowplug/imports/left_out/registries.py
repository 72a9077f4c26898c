"""Keeps TensorFlow's registries complete although modules that register something are put off, and cheap to fill.

A dictionary of the registry is replaced by one that knows which further keys there would be and which modules bring
them: asking for such a key imports the module, and asking for all keys imports them all. With each key TensorFlow keeps
where it was registered, for the message about a second one: while it is imported, the text of that line is not read.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from types import FrameType, ModuleType, SimpleNamespace
from typing import Any

from glowplug.imports.window import Undo, swap

Fetch = Callable[[str], object]


class AwaitingDict(dict[str, Any]):
    """A dictionary with keys that are still to come, each with the module that brings it."""

    def __init__(self, present: Mapping[str, Any], awaited: Mapping[str, str], fetch: Fetch) -> None:
        super().__init__(present)
        self._awaited = dict(awaited)
        self._fetch = fetch

    def __contains__(self, key: object) -> bool:
        self._bring(key)
        return super().__contains__(key)

    def __missing__(self, key: str) -> Any:
        self._bring(key)
        if super().__contains__(key):
            return super().__getitem__(key)
        raise KeyError(key)

    def get(self, key: str, default: Any = None) -> Any:
        """Return a value, after its module was imported."""
        self._bring(key)
        return super().get(key, default)

    def __iter__(self) -> Iterator[str]:
        self._bring_all()
        return super().__iter__()

    def __len__(self) -> int:
        self._bring_all()
        return super().__len__()

    def keys(self) -> Any:
        """Return all keys."""
        self._bring_all()
        return super().keys()

    def items(self) -> Any:
        """Return all keys and values."""
        self._bring_all()
        return super().items()

    def values(self) -> Any:
        """Return all values."""
        self._bring_all()
        return super().values()

    def _bring(self, key: object) -> None:
        module = self._awaited.pop(key, None) if type(key) is str else None
        if module is not None and module not in sys.modules:
            self._fetch(module)

    def _bring_all(self) -> None:
        for key in list(self._awaited):
            self._bring(key)


def await_keys(awaited: Mapping[tuple[str, str], Mapping[str, str]], fetch: Fetch) -> None:
    """Have registries wait for keys. A registry is named by its module and the path of its dictionary in there."""
    for (module_name, path), keys in awaited.items():
        holder: Any = sys.modules.get(module_name)
        *outer, last = path.split(".")
        for name in outer:
            holder = getattr(holder, name, None)
        present = getattr(holder, last, None)
        if type(present) is dict:
            missing = {key: module for key, module in keys.items() if key not in present}
            setattr(holder, last, AwaitingDict(present, missing, fetch))


def in_registry(module: ModuleType) -> Callable[[], Undo]:
    """Return how to patch `tensorflow.python.framework.registry`."""

    def extract_stack(frame: FrameType | None = None, limit: int | None = None) -> traceback.StackSummary:
        frames = traceback.walk_stack(sys._getframe(1) if frame is None else frame)
        stack = traceback.StackSummary.extract(frames, limit=limit, lookup_lines=False)
        stack.reverse()
        return stack

    return lambda: swap(module, traceback=SimpleNamespace(**{**vars(traceback), "extract_stack": extract_stack}))
