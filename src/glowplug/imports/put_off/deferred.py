"""Puts off the modules of other packages that Keras imports for a few of its functions alone.

Such a module is found, so that a missing one is missed at once, and it is the module object that everybody gets; but
its body runs when somebody first looks at it. Only modules that an earlier start has loaded without trouble, and
without a change of the process's settings, are put off.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from threading import get_ident
from types import ModuleType
from typing import Any

from glowplug.imports.window import Window

from .settings import Settings

# What the import system and those who go through `sys.modules` look at. `__path__` is not among them: a submodule needs
# its package.
_KNOWN = frozenset(("__class__", "__name__", "__spec__", "__loader__", "__file__", "__package__", "__cached__"))


class Deferred(ModuleType):
    """A module whose body has not run. It becomes an ordinary one when it has."""

    def __getattribute__(self, name: str) -> Any:
        if name in _KNOWN:
            return ModuleType.__getattribute__(self, name)
        _load(self)
        return ModuleType.__getattribute__(self, name)  # no `super()`: the class may be another by now

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _KNOWN:
            _load(self)
        ModuleType.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        _load(self)
        ModuleType.__delattr__(self, name)


class DeferringLoader:
    """Makes a deferred module of what another loader would load; `first` are modules to import all the same."""

    def __init__(self, loader: Any, window: Window, first: Sequence[str]) -> None:
        self.loader = loader
        self.window = window
        self.filters: list[Any] = []  # of warnings, at the time when it was put off
        self._first = first
        self.owner = 0  # the thread in which the body runs

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Return what the other loader makes."""
        made: ModuleType | None = self.loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        """Run nothing of it now."""
        for name in self._first:
            import_module(name)
        self.filters = list(warnings.filters)
        module.__class__ = Deferred


class Deferrals:
    """Finds modules that are put off, as long as it is among the finders."""

    def __init__(
        self,
        names: Mapping[str, Sequence[str]],
        is_proven: Callable[[str], bool],
        window: Window,
    ) -> None:
        self._names, self._is_proven, self._window = names, is_proven, window
        self._asking = False

    def put_off(self) -> Callable[[], None]:
        """Begin to put off; the returned function ends it."""
        sys.meta_path.insert(0, self)
        return lambda: sys.meta_path.remove(self)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec that the other finders have, with a loader that waits."""
        if name not in self._names or self._asking or not self._is_proven(name):
            return None
        self._asking = True
        try:
            spec: ModuleSpec | None = sys.modules["_frozen_importlib"]._find_spec(name, path, target)
        finally:
            self._asking = False
        if spec is not None and spec.loader is not None:
            spec.loader = DeferringLoader(spec.loader, self._window, self._names[name])  # type: ignore[assignment]
        return spec


def _load(module: ModuleType) -> None:
    """Run the body, once; other threads wait, and the thread that runs it sees the module as it fills."""
    spec: Any = ModuleType.__getattribute__(module, "__spec__")
    waiting = spec.loader
    if not isinstance(waiting, DeferringLoader) or waiting.owner == get_ident():
        return
    bootstrap: Any = sys.modules["_frozen_importlib"]
    with bootstrap._ModuleLockManager(spec.name):
        if type(module) is not Deferred:
            return
        waiting.owner = get_ident()
        waiting.window.enter()
        settings = Settings()
        try:
            waiting.loader.exec_module(module)
            spec.loader = module.__loader__ = waiting.loader
            module.__class__ = ModuleType  # type: ignore[assignment]
        finally:
            settings.restore(waiting.filters)
            waiting.owner = 0
            waiting.window.leave()
