"""Models for the trials of a tuner: one for each combination of arguments, started anew for each trial."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from glowplug.core.errors import UsageError

from .reinit import reinitialize


class Reused:
    """Calls `build` once for each combination of arguments; later calls give the same model with fresh weights.

    What a call returns is as `build` would have made it: weights, optimizer slots, metrics and learning rate. A model
    that an earlier call returned is the same object, so a trial must be over before the next one begins.
    """

    def __init__(self, build: Callable[..., Any]) -> None:
        self._build = build
        self._models: dict[Hashable, tuple[Any, float | None]] = {}

    def __call__(self, *, seed: int | None = None, **arguments: Any) -> Any:
        """Return the compiled model for these arguments of `build`, with the weights that `seed` gives."""
        key = tuple((name, type(value), value) for name, value in sorted(arguments.items()))
        try:
            known = self._models.get(key)
        except TypeError as error:
            remedy = "pass numbers, texts and tuples; make lists of them inside build"
            raise UsageError("what a model is built from must be hashable", seen=error, remedy=remedy) from None
        if known is None:
            model = self._build(**arguments)
            known = self._models[key] = (model, _learning_rate(model))
        model, rate = known
        reinitialize(model, seed=seed)
        if rate is not None:
            model.optimizer.learning_rate = rate
        return model

    def __len__(self) -> int:
        """Return how many models there are."""
        return len(self._models)

    def clear(self) -> None:
        """Forget all models."""
        self._models.clear()


def _learning_rate(model: Any) -> float | None:
    """Return the rate that a model was compiled with; None where it has none, or a schedule, which no trial changes."""
    optimizer = getattr(model, "optimizer", None)
    rate = getattr(optimizer, "_learning_rate", None)
    return float(rate) if rate is not None and hasattr(rate, "assign") else None
