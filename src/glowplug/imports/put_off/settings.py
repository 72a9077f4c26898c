"""The settings of a process that modules can change while they are imported.

A module that is loaded later than stock would load it must not be noticed: not by another course of random numbers,
and not by undoing what the program has chosen since. `Settings` remembers and puts back; a module whose early import
changes one of them is not put off at all (`Settings.differences`). Filters of warnings are the exception: many packages
add some for classes of their own, so those that come late go to where an early import would have put them.
"""

from __future__ import annotations

import _locale
import _signal  # type: ignore[import-not-found]
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

Filters = list[Any]
_INTERPRETER = ("excepthook", "displayhook", "unraisablehook", "breakpointhook")


class Settings:
    """The settings as they are now."""

    def __init__(self) -> None:
        self._values = {name: read() for name, (read, _) in _KINDS.items()}
        self._filters = list(warnings.filters)

    def differences(self) -> list[str]:
        """Return the names of the settings that are others by now."""
        return [name for name, (read, _) in _KINDS.items() if read() != self._values[name]]

    def restore(self, early_filters: Filters) -> None:
        """Put back what has changed. `early_filters` are those that there were when the module was put off."""
        for name in self.differences():
            value = self._values[name]
            if value is not None:
                _KINDS[name][1](value)
        self._place_filters(early_filters)

    def _place_filters(self, early: Filters) -> None:
        if warnings.filters == self._filters:
            return
        added = [one for one in warnings.filters if one not in self._filters]
        place = len(self._filters) - len(early)
        was_reset = place < 0 or self._filters[place:] != early  # with what an early import had added
        warnings.filters[:] = (  # type: ignore[index]
            self._filters if was_reset else [*self._filters[:place], *added, *self._filters[place:]]
        )
        warnings._filters_mutated()  # type: ignore[attr-defined]


def _random() -> Any:
    module: Any = sys.modules.get("random")
    return None if module is None else module.getstate()


def _numpy_random() -> Any:
    module: Any = sys.modules.get("numpy.random")
    if module is None:
        return None
    state = module.get_state(legacy=False)
    return repr(state), _Same(state)


class _Same:
    """Carries a value that cannot be compared."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same)

    __hash__ = None  # type: ignore[assignment]


def _set_environment(wanted: dict[str, str]) -> None:
    for name in os.environ.keys() - wanted.keys():
        del os.environ[name]
    os.environ.update({name: value for name, value in wanted.items() if os.environ.get(name) != value})


def _handlers() -> dict[int, Any]:
    return {int(number): _signal.getsignal(number) for number in _signal.valid_signals()}


def _set_handlers(wanted: dict[int, Any]) -> None:
    for number, handler in wanted.items():
        if handler is not None and _signal.getsignal(number) != handler:
            _signal.signal(number, handler)


def _decimal() -> Any:
    module: Any = sys.modules.get("decimal")
    if module is None:
        return None
    context = module.getcontext()
    return repr(context), _Same(context.copy())


def _logging() -> Any:
    module: Any = sys.modules.get("logging")
    if module is None:
        return None
    root = module.root
    return root.level, list(root.handlers), root.disabled, module.getLoggerClass(), module.root.manager.disable


def _set_logging(wanted: Any) -> None:
    module: Any = sys.modules["logging"]
    module.root.setLevel(wanted[0])
    module.root.handlers[:] = wanted[1]
    module.root.disabled = wanted[2]
    module.setLoggerClass(wanted[3])
    module.disable(wanted[4])


def _socket_timeout() -> Any:
    module: Any = sys.modules.get("socket")
    return None if module is None else (module.getdefaulttimeout(),)


def _numpy_errors() -> Any:
    module: Any = sys.modules.get("numpy")
    return None if module is None or not hasattr(module, "geterr") else module.geterr()


def _set_attributes(wanted: list[Any]) -> None:
    for name, value in zip(_INTERPRETER, wanted, strict=True):
        setattr(sys, name, value)


_KINDS: dict[str, tuple[Callable[[], Any], Callable[[Any], object]]] = {
    "random": (_random, lambda value: sys.modules["random"].setstate(value)),  # noqa: PLW0108 - the one of then
    "numpy.random": (_numpy_random, lambda value: sys.modules["numpy.random"].set_state(value[1].value)),
    "numpy errors": (_numpy_errors, lambda value: sys.modules["numpy"].seterr(**value)),
    "environment": (lambda: dict(os.environ), _set_environment),
    "sys.path": (lambda: list(sys.path), lambda value: sys.path.__setitem__(slice(None), value)),
    "hooks": (lambda: [getattr(sys, name) for name in _INTERPRETER], _set_attributes),
    "recursion limit": (sys.getrecursionlimit, sys.setrecursionlimit),
    "signals": (_handlers, _set_handlers),
    "locale": (lambda: _locale.setlocale(_locale.LC_ALL, None), lambda value: _locale.setlocale(_locale.LC_ALL, value)),
    "decimal": (_decimal, lambda value: sys.modules["decimal"].setcontext(value[1].value)),
    "logging": (_logging, _set_logging),
    "socket": (_socket_timeout, lambda value: sys.modules["socket"].setdefaulttimeout(value[0])),
}
