"""Builds a model without initialising it: variables that have a place in TensorFlow and no value, hence no memory.

Whether a variable has a value is asked of TensorFlow, so any way of loading or assigning counts. What layers make
with `add_weight` is skipped; seeds of dropout, metrics and optimizers are made as always, since no file has them all.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from glowplug.core.errors import UsageError, WeightsError

_lock = threading.Lock()
_NAMED = 8


class Skipped:
    """The variables of a block whose initialisers did not run."""

    def __init__(self) -> None:
        self._variables: list[Any] = []

    def add(self, variable: Any) -> None:
        """Remember a variable without a value."""
        self._variables.append(variable)

    def unset(self, within: Any = None) -> list[str]:
        """Return the paths of variables, of a layer or of all, that have no value yet."""
        import tensorflow as tf

        wanted = None if within is None else {id(variable) for variable in within.variables}
        with tf.init_scope():  # a step that is being traced asks too
            return [
                variable.path
                for variable in self._variables
                if (wanted is None or id(variable) in wanted) and not bool(variable._value.is_initialized())
            ]

    def check(self, within: Any = None) -> None:
        """Raise `WeightsError` with their names if there are such variables."""
        names = self.unset(within)
        if names:
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            raise WeightsError(
                f"{len(names)} variables were neither loaded nor assigned",
                seen=", ".join(names[:_NAMED]) + more,
                remedy="load all weights inside the skip_init() block, or build these layers outside of it",
            )


@contextmanager
def skip_init() -> Iterator[Skipped]:
    """Build models in this block without running initialisers; load their weights before it ends.

    Calling a model too early, or leaving the block, raises `WeightsError` with the names of variables without value.
    """
    from keras.src.backend.tensorflow.core import Variable
    from keras.src.layers.layer import Layer

    if not _lock.acquire(blocking=False):
        raise UsageError("skip_init() blocks cannot be nested or overlap", remedy="use one block for all models")
    skipped, here = Skipped(), threading.local()
    here.owner = True
    plain = Layer.add_weight, Variable._initialize_with_initializer, Layer.__call__

    def add_weight(layer: Any, *arguments: Any, **options: Any) -> Any:
        if not getattr(here, "owner", False):
            return plain[0](layer, *arguments, **options)
        here.skipping = True
        try:
            variable = plain[0](layer, *arguments, **options)
        finally:
            here.skipping = False
        # Made while Keras infers shapes: it gets its place in TensorFlow later, outside of `add_weight`.
        variable._glowplug_skipped = variable._value is None
        return variable

    def initialize(variable: Any, initializer: Any) -> None:
        if not getattr(here, "skipping", False) and not getattr(variable, "_glowplug_skipped", False):
            plain[1](variable, initializer)
            return
        variable._value = _without_value(variable)
        skipped.add(variable)

    def call(layer: Any, *arguments: Any, **options: Any) -> Any:
        if getattr(here, "owner", False) and layer.built and not _symbolic(arguments, options):
            skipped.check(layer)
        return plain[2](layer, *arguments, **options)

    call.__wrapped__ = plain[2]  # type: ignore[attr-defined]
    Layer.add_weight, Variable._initialize_with_initializer, Layer.__call__ = add_weight, initialize, call
    try:
        yield skipped
    finally:
        Layer.add_weight, Variable._initialize_with_initializer, Layer.__call__ = plain
        _lock.release()
    skipped.check()


def _without_value(variable: Any) -> Any:
    import tensorflow as tf
    from tensorflow.python.ops.resource_variable_ops import UninitializedVariable

    with tf.init_scope():
        return UninitializedVariable(
            shape=tuple(variable._shape),
            dtype=tf.as_dtype(variable._dtype),
            trainable=variable.trainable,
            name=variable.name,
            aggregation=variable._map_aggregation(variable.aggregation),
            synchronization=variable._map_synchronization(variable.synchronization),
        )


def _symbolic(arguments: Any, options: Any) -> bool:
    """Say whether this call only infers shapes, which needs no values."""
    from keras.src import tree
    from keras.src.backend import KerasTensor
    from keras.src.backend.common.stateless_scope import in_stateless_scope

    return in_stateless_scope() or any(isinstance(each, KerasTensor) for each in tree.flatten((arguments, options)))
