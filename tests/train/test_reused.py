"""Models of a tuner's trials: as `build` would have made them, without building."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from glowplug import train
from glowplug.core.errors import UsageError

pytestmark = pytest.mark.tensorflow

X, Y = np.ones((8, 4), "float32"), np.ones((8, 1), "float32")


def build(width=4, rate=0.5):
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(width), keras.layers.Dense(1)])
    model.compile(keras.optimizers.Adam(rate), "mse")
    return model


def weights(model):
    return [np.array(value) for value in model.weights]


def test_one_model_for_each_combination_of_arguments():
    models = train.Reused(build)
    first = models(width=4, seed=1)
    assert models(width=4, seed=2) is first
    assert models(width=8, seed=1) is not first
    assert models(width=4, rate=0.1) is not first
    assert len(models) == 3
    models.clear()
    assert models(width=4) is not first


def test_a_trial_begins_as_the_first_one_did_and_nothing_is_traced():
    models = train.Reused(build)
    model = models(seed=3)
    fresh = weights(model)
    losses = model.fit(X, Y, epochs=2, verbose=0).history["loss"]
    traced = model.train_function
    model.optimizer.learning_rate = 1e-4
    again = models(seed=3)
    assert all(map(np.array_equal, fresh, weights(again)))
    assert float(again.optimizer.learning_rate) == 0.5
    assert int(again.optimizer.iterations) == 0
    assert again.fit(X, Y, epochs=2, verbose=0).history["loss"] == losses
    assert again.train_function is traced
    assert not all(map(np.array_equal, fresh, weights(models(seed=4))))


def test_a_schedule_stays():
    def scheduled():
        model = build()
        model.compile(keras.optimizers.SGD(keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.9)), "mse")
        return model

    models = train.Reused(scheduled)
    models().fit(X, Y, verbose=0)
    assert float(models().optimizer.learning_rate) == pytest.approx(0.1)


def test_equal_values_of_other_types_are_other_arguments():
    models = train.Reused(lambda bias: build())
    assert models(bias=True) is not models(bias=1)


def test_a_list_is_refused_in_one_line():
    with pytest.raises(UsageError, match="hashable") as caught:
        train.Reused(lambda widths: build())(widths=[1, 2])
    assert "\n" not in str(caught.value)
