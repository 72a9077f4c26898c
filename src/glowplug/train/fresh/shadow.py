"""Finds the initialiser of every variable of a model that is already built.

Keras forgets an initialiser once it has run. A layer made again from its configuration and built again, with
variables that are recorded and never created, shows which initialiser belongs to which variable.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from glowplug.core.errors import WeightsError

_recording = threading.local()
_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Source:
    """A variable, the callable that gives its first value, and the random initialisers that this one may use."""

    variable: Any
    initializer: Callable[..., Any]
    random: list[Any] = field(default_factory=list)


def sources(model: Any) -> list[Source]:
    """Return a source for each weight of the model; raise `WeightsError` with the names of those that have none."""
    found: list[Source] = []
    lost: list[str] = []
    for layer in model._flatten_layers():
        own = [*layer._trainable_variables, *layer._non_trainable_variables]
        if not own or hasattr(layer, "adapt"):  # what was adapted to data is no weight
            continue
        twins, random = _twins(layer)
        for position, variable in enumerate(own):
            initializer = _match(variable, twins, position)
            if initializer is None:
                initializer = _by_name(layer, variable)
            if initializer is None:
                lost.append(variable.path)
            else:
                found.append(Source(variable, initializer, random))
    if lost:
        raise WeightsError(
            f"the initialisers of {len(lost)} variables cannot be found",
            seen=", ".join(lost[:8]),
            remedy="give the layer get_config() and build(), or an attribute NAME_initializer for each weight NAME",
        )
    return found


def optimizer_sources(optimizer: Any) -> list[Source]:
    """Return a source for each variable of a built optimizer but the learning rate, whose first value Keras forgets."""
    with recorded():
        twin = type(optimizer).from_config(optimizer.get_config())
        if optimizer.built:
            twin.build(list(optimizer._trainable_variables))
    ours, theirs = optimizer.variables, twin.variables
    if [tuple(each._shape) for each in ours] != [tuple(each._shape) for each in theirs]:
        raise WeightsError(
            "an optimizer made from this one's configuration has other variables",
            seen=optimizer.name,
            remedy="call reinitialize(optimizer=False) and compile the model with a new optimizer",
        )
    rates = {id(getattr(each, "_learning_rate", None)) for each in (optimizer, _inner(optimizer))}
    return [Source(one, other._initializer) for one, other in zip(ours, theirs, strict=True) if id(one) not in rates]


def _inner(optimizer: Any) -> Any:
    return getattr(optimizer, "inner_optimizer", None)  # of LossScaleOptimizer


def _twins(layer: Any) -> tuple[list[Any], list[Any]]:
    """Return the recorded variables of a layer made from the same configuration, and its random initialisers."""
    from keras.src.initializers.random_initializers import RandomInitializer

    try:
        with recorded():
            twin = type(layer).from_config(layer.get_config())
            if not twin.built:
                twin.build_from_config(layer.get_build_config())
    except Exception:  # code of the user's own, which need not support being configured; its names are reported
        return [], []
    twins = [*twin._trainable_variables, *twin._non_trainable_variables]
    candidates = [*vars(twin).values(), *(variable._initializer for variable in twins)]
    return twins, [each for each in candidates if isinstance(each, RandomInitializer)]


def _match(variable: Any, twins: list[Any], position: int) -> Callable[..., Any] | None:
    def fits(twin: Any) -> bool:
        return (twin.name, tuple(twin._shape), twin._dtype) == (variable.name, tuple(variable._shape), variable._dtype)

    named = [twin for twin in twins if fits(twin)]
    if len(named) > 1:  # freezing moves variables from one list to the other, so position decides only among equals
        named = [twin for twin in twins[position : position + 1] if fits(twin)]
    return named[0]._initializer if len(named) == 1 else None


def _by_name(layer: Any, variable: Any) -> Callable[..., Any] | None:
    import keras

    initializer = getattr(layer, f"{variable.name}_initializer", None)
    return None if initializer is None else keras.initializers.get(initializer)


@contextmanager
def recorded() -> Iterator[None]:
    """While it lasts, a Keras variable that this thread makes keeps its initialiser and gets no memory."""
    from keras.src.backend.tensorflow.core import Variable

    with _lock:
        plain = Variable._initialize, Variable._initialize_with_initializer

        def initialize(self: Any, value: Any) -> None:
            if not getattr(_recording, "on", False):
                plain[0](self, value)
                return
            self._value = value
            self._initializer = lambda shape, dtype=None: value

        def initialize_with(self: Any, initializer: Any) -> None:
            if not getattr(_recording, "on", False):
                plain[1](self, initializer)
                return
            self._value = None
            self._initializer = initializer

        Variable._initialize, Variable._initialize_with_initializer = initialize, initialize_with
        _recording.on = True
        try:
            yield
        finally:
            _recording.on = False
            Variable._initialize, Variable._initialize_with_initializer = plain
