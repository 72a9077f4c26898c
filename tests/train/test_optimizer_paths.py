"""Variables that an optimizer makes in its first step have the paths that stock Keras gives them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.tensorflow

OPTIMIZERS = ["Adam", "Nadam", "Adafactor", "Muon", "LossScaleOptimizer", "MultiOptimizer"]


def paths_after_a_step(kind: str, own_step: bool) -> list[str]:
    import keras
    import numpy as np
    import tensorflow as tf
    from keras import layers

    class Own(keras.Sequential):  # type: ignore[misc]
        def train_step(self, data: Any) -> Any:
            x, y = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self(x) - y) ** 2)
            weights = self.trainable_weights
            self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
            return {"loss": loss}

    keras.utils.clear_session()
    keras.utils.set_random_seed(1)
    x = np.ones((4, 3), "float32")
    model = (Own if own_step else keras.Sequential)([keras.Input((3,)), layers.Dense(2), layers.Dense(1)])
    made: Any = getattr(keras.optimizers, kind, None)
    if made is None:
        pytest.skip(f"this Keras has no {kind}")
    inner = keras.optimizers.Nadam()
    given: dict[str, Any] = {"LossScaleOptimizer": lambda: [keras.optimizers.Nadam()]}
    given["MultiOptimizer"] = lambda: [lambda variable: inner]
    model.compile(made(*given.get(kind, list)()), "mse")
    model.fit(x, x[:, :1], verbose=0)
    return [each.path for each in model.optimizer.variables]


@pytest.mark.parametrize("own_step", [False, True])
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_paths_are_those_of_stock(kind: str, own_step: bool, tmp_path: Path) -> None:
    from glowplug import train

    stock = paths_after_a_step(kind, own_step)
    with train.enabled(tmp_path / "cache"):
        assert paths_after_a_step(kind, own_step) == stock
        assert paths_after_a_step(kind, own_step) == stock
