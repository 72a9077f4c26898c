"""What most programs do first, for a trial (see `spare`). Runs in a child of the standby that ends afterwards."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def exercise(kind: str, preload: tuple[str, ...]) -> None:
    """Import the list as a program would, and run what comes first with it."""
    modules: dict[str, Any] = {name: import_module(name) for name in preload}
    if kind == "native":
        for module in modules.values():
            if hasattr(module, "exercise"):
                module.exercise()
    elif {"tensorflow", "keras"} <= set(preload):
        keras = modules["keras"]
        print(keras.layers.Dense(4)(keras.ops.ones((2, 3))))
