"""The first training step, once per machine instead of once per run.

Every name is loaded when it is first used, so that importing this package, or a module of it that needs no
TensorFlow, costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import initializers
    from .growth import watch
    from .reinit import reinitialize
    from .reinit_session import reinitialize_session
    from .skip import skip_init
    from .stored import function
    from .switch import counts, disable, enable, enabled

_PLACES = {
    "enable": "switch",
    "disable": "switch",
    "enabled": "switch",
    "counts": "switch",
    "function": "stored",
    "initializers": "initializers",
    "reinitialize": "reinit",
    "watch": "growth",
    "skip_init": "skip",
    "reinitialize_session": "reinit_session",
}

__all__ = [
    "enable",
    "disable",
    "enabled",
    "counts",
    "function",
    "initializers",
    "reinitialize",
    "reinitialize_session",
    "watch",
    "skip_init",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f".{_PLACES[name]}", __name__)
    return module if _PLACES[name] == name else getattr(module, name)


def __dir__() -> list[str]:
    return sorted(__all__)
