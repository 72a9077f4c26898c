"""A small model with everything a step can reach, and how to train it. Each `edit` is one thing a
user may change.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers

SCALE = 0.5


def data(count: int = 20) -> tuple[Any, Any]:
    rng = np.random.default_rng(7)
    return rng.random((count, 6), "float32"), np.arange(count, dtype="int32") % 3


class Scaled(layers.Layer):
    """A custom layer with an attribute and a global."""

    def __init__(self, factor: float = 2.0) -> None:
        super().__init__()
        self.factor = factor

    def call(self, x: Any) -> Any:
        return x * self.factor * SCALE


def small(
    *,
    width: int = 5,
    activation: str = "relu",
    loss: Any = None,
    optimizer: Any = None,
    metrics: Any = ("accuracy",),
    custom: Any = None,
    change: Callable[[Any], None] | None = None,
    **compile_options: Any,
) -> Any:
    keras.utils.set_random_seed(3)
    model = keras.Sequential(
        [
            keras.Input((6,)),
            layers.Dense(width, activation=activation),
            layers.BatchNormalization(),
            layers.Dropout(0.25),
            *([custom()] if custom else []),
            layers.Dense(3),
        ]
    )
    if change is not None:
        change(model)
    model.compile(
        optimizer() if callable(optimizer) else "adam",
        loss or keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=list(metrics),
        **compile_options,
    )
    return model


def trained(model: Any, batch: int = 8, epochs: int = 2, *, also: bool = False) -> list[Any]:
    """Return the logs of every step, and `also` an evaluation and predictions: equal runs give
    equal lists.
    """
    x, y = data()
    steps: list[Any] = []

    class Losses(keras.callbacks.Callback):  # type: ignore[misc]
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            steps.append({name: float(value) for name, value in logs.items()})

    model.fit(x, y, batch_size=batch, epochs=epochs, shuffle=False, verbose=0, callbacks=[Losses()])
    if not also:
        return steps
    evaluated = model.evaluate(x, y, batch_size=batch, verbose=0)
    predicted = model.predict(x, batch_size=batch, verbose=0)
    return [steps, [float(value) for value in evaluated], predicted.tolist()]


def dataset(batch: int = 4) -> Any:
    return tf.data.Dataset.from_tensor_slices(data()).batch(batch, drop_remainder=True)


def kept(cache: Path) -> list[str]:
    """Return which functions a cache has entries of."""
    from glowplug.train.trace.entries import headers
    from glowplug.train.trace.entry_store import DirectoryStore

    return [header.info["function"] for _, header in headers(DirectoryStore(cache))]
