"""Loss and metrics are made for the structure of what they are given first: ahead of a step, that must be the same."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.tensorflow


def _list_of_one() -> Any:
    import keras
    from keras import layers

    inputs = keras.Input((6,))
    return keras.Model([inputs], [layers.Dense(3)(inputs)])


def _list_of_one_in_a_list() -> Any:
    import keras
    from keras import layers

    inputs = keras.Input((6,))
    return keras.Model(inputs, [[layers.Dense(3)(inputs)]])


def _part_of_the_output() -> Any:
    import keras
    import tensorflow as tf
    from keras import layers

    class Mine(keras.Model):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.dense = layers.Dense(3)

        def call(self, x: Any) -> Any:
            return [self.dense(x)]

        def train_step(self, data: Any) -> Any:
            x, y = data
            with tf.GradientTape() as tape:
                prediction = self(x, training=True)[0]
                loss = self.compute_loss(y=y, y_pred=prediction)
            weights = self.trainable_variables
            self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
            return {"loss": loss, **self.compute_metrics(x, y, prediction)}

    return Mine()


def _something_else() -> Any:
    """Accuracy of a vector of three is another metric than that of a vector of one, which the model returns."""
    import keras
    import tensorflow as tf
    from keras import layers

    class Mine(keras.Model):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.dense = layers.Dense(3)

        def call(self, x: Any) -> Any:
            return tf.reduce_sum(self.dense(x), axis=-1, keepdims=True)

        def train_step(self, data: Any) -> Any:
            x, y = data
            self(x, training=True)
            with tf.GradientTape() as tape:
                prediction = self.dense(x)
                loss = self.compute_loss(y=y, y_pred=prediction)
            weights = self.trainable_variables
            self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
            return {"loss": loss, **self.compute_metrics(x, y, prediction)}

    return Mine()


def _otherwise_in_training() -> Any:
    import keras
    from keras import layers

    class Mine(keras.Model):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.dense = layers.Dense(3)

        def call(self, x: Any, training: bool = False) -> Any:
            return self.dense(x) if training else [self.dense(x)]

    return Mine()


MODELS = [_list_of_one, _list_of_one_in_a_list, _part_of_the_output, _something_else, _otherwise_in_training]


@pytest.mark.parametrize("make", MODELS)
def test_losses_and_metrics_are_those_of_stock(make: Any, tmp_path: Any) -> None:
    import keras

    from glowplug import train
    from tests.train import models

    def results() -> Any:
        keras.utils.set_random_seed(5)
        model = make()
        model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
        x, y = models.data()
        return model.fit(x, y, epochs=2, batch_size=10, verbose=0, shuffle=False).history

    try:
        stock = results()
    except ValueError as error:  # what stock refuses is refused in the same words
        stock = str(error)
    with train.enabled(tmp_path / "cache"):
        for _ in range(2):
            if isinstance(stock, str):
                with pytest.raises(ValueError) as caught:
                    results()
                assert str(caught.value) == stock
            else:
                assert results() == stock


GIVEN = {  # what a step gives to loss and metrics, and what the model is compiled with
    "what the model returns": (lambda y, p: (y, p), "mse", ["mae"]),
    "a list of two": (lambda y, p: ([y, y], [p, p * 2.0]), ["mse", "mae"], None),
    "a list of two, to metrics": (lambda y, p: ([y, y], [p, p * 2.0]), None, [["mae"], ["mse"]]),
    "a list of two, to too few metrics": (lambda y, p: ([y, y], [p, p * 2.0]), "mse", ["mae"]),
    "names": (lambda y, p: ({"a": y, "b": y}, {"a": p, "b": p - 1.0}), {"a": "mse", "b": "mae"}, None),
    "names, some of which count": (lambda y, p: ({"a": y, "b": y}, {"a": p, "b": p}), {"a": "mse"}, {"a": ["mae"]}),
}


def _hands_over(given: Any, loss: Any, metrics: Any) -> Any:
    import keras
    import tensorflow as tf

    class Model(keras.Model):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.dense = keras.layers.Dense(1)

        def call(self, x: Any) -> Any:
            return self.dense(x)

        def train_step(self, data: Any) -> Any:
            x, y = data
            with tf.GradientTape() as tape:
                prediction = self(x, training=True)
                parts = given(y, prediction)
                total = self.compute_loss(x, *parts) if loss else tf.reduce_mean(prediction)
            self.optimizer.apply(tape.gradient(total, self.trainable_weights), self.trainable_weights)
            return {**self.compute_metrics(x, *parts), "total": total}

    keras.utils.set_random_seed(1)
    model = Model()
    model.compile("sgd", loss, metrics=metrics)
    return model


@pytest.mark.parametrize("built", [False, True], ids=["unbuilt", "built"])
@pytest.mark.parametrize("name", GIVEN)
def test_a_step_that_hands_over_something_else(name, built, tmp_path):
    """Loss and metrics are made for what the step gives them, not for what the model returns. Where it builds the model
    as well, they are learned from the step.
    """
    import numpy as np

    from glowplug import train

    def run() -> Any:
        x = np.random.default_rng(1).random((8, 4), "float32")
        model = _hands_over(*GIVEN[name])
        if built:
            model(x)
        try:
            return model.fit(x, x[:, :1], verbose=0, shuffle=False, batch_size=4, epochs=2).history
        except ValueError as error:
            return str(error)

    expected = run()
    with train.enabled(tmp_path / "cache"):
        assert [run(), run()] == [expected, expected]
        restorable = type(expected) is dict and not (built and name.startswith("a list"))
        assert train.counts().get("restored", 0) == restorable
