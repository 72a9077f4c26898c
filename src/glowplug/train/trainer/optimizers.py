"""Builds an optimizer ahead of its first step, as that step would."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def build_optimizer(optimizer: Any, variables: Iterable[Any]) -> None:
    """Build `optimizer` for these variables. Paths of those that it makes itself begin with the scope that is open."""
    from keras.src.backend import name_scope

    if _opens_a_scope(type(optimizer)):
        with name_scope(optimizer.name, caller=optimizer):
            optimizer.build(list(variables))
    else:
        optimizer.build(list(variables))


def _opens_a_scope(kind: type[Any]) -> bool:
    """Whether Keras' `apply`, which one of the program's own ends in, builds in a scope of the optimizer's name."""
    stock = next(base for base in kind.__mro__ if base.__module__.startswith("keras.") and "apply" in vars(base))
    return "name_scope" in vars(stock)["apply"].__code__.co_names
