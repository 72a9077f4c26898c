"""Models on many hosts, with Ray: fetched about once, warm before they answer, one copy of the weights on a host.

Every name is loaded when it is first used; Ray is imported only then.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .application import deployment
    from .nodes.preloading import preload
    from .rollout import deploy, down, rollback
    from .state import status

_PLACES = {
    "deploy": "rollout",
    "deployment": "application",
    "down": "rollout",
    "preload": "nodes.preloading",
    "rollback": "rollout",
    "status": "state",
}

__all__ = ["deploy", "deployment", "down", "preload", "rollback", "status"]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_PLACES[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
