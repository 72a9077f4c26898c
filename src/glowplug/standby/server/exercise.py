"""What most programs do first (see `spare`): in a trial, or in the child that waits. Runs in a child of the standby."""

from __future__ import annotations

import glob
from importlib import import_module
from typing import Any

_ACCELERATORS = ("/dev/nvidia[0-9]*", "/dev/kfd", "/dev/dxg")


def leaves_no_trace(kind: str) -> bool:
    """Tell whether a child may do this before it knows what it is for, and still be like any other.

    A program could tell, since its modules would have been used. A model that is hosted cannot, unless devices were
    opened that another one shall have.
    """
    return kind == "native" and not any(glob.glob(pattern) for pattern in _ACCELERATORS)


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
