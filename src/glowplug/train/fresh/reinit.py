"""Starts a model anew in place: fresh weights, fresh optimizer, the same graph and the same variables.

Every value is computed before the first variable is touched, so a model that cannot be started anew stays as it was.
"""

from __future__ import annotations

import random
import weakref
from typing import Any

import numpy as np

from glowplug.core.errors import UsageError

from .shadow import Source, optimizer_sources, sources

_known: weakref.WeakKeyDictionary[Any, tuple[tuple[int, ...], list[Source]]] = weakref.WeakKeyDictionary()


def reinitialize(model: Any, *, optimizer: bool = True, seed: int | None = None) -> None:
    """Give a built Keras model the weights it would have if it were built again, and reset optimizer and metrics.

    `seed` makes the result reproducible; an initialiser with a seed of its own keeps that, as in a rebuild. Nothing
    is traced and no variable is created. The learning rate is left as it is.
    """
    if not getattr(model, "built", False):
        raise UsageError(
            "only a built model can be reinitialised",
            seen=getattr(model, "name", type(model).__name__),
            remedy="call it once, or model.build(shape), before reinitialize()",
        )
    numbers = random.Random(seed) if seed is not None else random.SystemRandom()
    fresh: list[tuple[Any, Any]] = []
    for source in _sources(model):
        for initializer in source.random:
            if initializer._init_seed is None:
                initializer.seed = numbers.randint(1, 10**9)
        fresh.append((source.variable, _first_value(source)))
    fresh += [(generator.state, _state(generator, numbers)) for generator in _seed_generators(model)]
    if optimizer and getattr(model, "optimizer", None) is not None:
        fresh += [(source.variable, _first_value(source)) for source in optimizer_sources(model.optimizer)]
    for variable, value in fresh:
        variable.assign(value)
    for metric in model.metrics:
        metric.reset_state()
    model.stop_training = False


def _sources(model: Any) -> list[Source]:
    """Return the sources, searched for once as long as the model keeps its variables."""
    identity = tuple(id(variable) for variable in model.variables)
    known = _known.get(model)
    if known is None or known[0] != identity:
        # Only weak references to the model may be kept here; the variables do not refer to it.
        known = _known[model] = (identity, sources(model))
    return known[1]


def _first_value(source: Source) -> Any:
    return source.initializer(tuple(source.variable._shape), dtype=source.variable._dtype)


def _seed_generators(model: Any) -> list[Any]:
    found = {id(each): each for layer in model._flatten_layers() for each in layer._seed_generators}
    return list(found.values())


def _state(generator: Any, numbers: random.Random) -> Any:
    seed = generator._initial_seed if generator._initial_seed is not None else numbers.randint(1, 10**9)
    return np.array([seed, 0])
