"""The first training step, once per machine instead of once per run.

Every name is loaded when it is first used, so that importing this package, or a module of it that needs no
TensorFlow, costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import initializers
    from .fresh.reinit import reinitialize
    from .fresh.reinit_session import reinitialize_session
    from .fresh.reused import Reused
    from .fresh.skipping import skip_init
    from .fresh.trials import keras_tuner_build, optuna_objective
    from .growth import watch
    from .stored import function
    from .switch import counts, disable, enable, enabled
    from .weights.load import load_weights
    from .weights.save import save_weights

_PLACES = {
    "enable": "switch",
    "disable": "switch",
    "enabled": "switch",
    "counts": "switch",
    "function": "stored",
    "initializers": "initializers",
    "keras_tuner_build": "fresh.trials",
    "load_weights": "weights.load",
    "optuna_objective": "fresh.trials",
    "reinitialize": "fresh.reinit",
    "reinitialize_session": "fresh.reinit_session",
    "Reused": "fresh.reused",
    "save_weights": "weights.save",
    "skip_init": "fresh.skipping",
    "watch": "growth",
}

__all__ = [
    "enable",
    "disable",
    "enabled",
    "counts",
    "function",
    "initializers",
    "keras_tuner_build",
    "load_weights",
    "optuna_objective",
    "reinitialize",
    "reinitialize_session",
    "Reused",
    "save_weights",
    "skip_init",
    "watch",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f".{_PLACES[name]}", __name__)
    return module if _PLACES[name] == name else getattr(module, name)


def __dir__() -> list[str]:
    return sorted(__all__)
