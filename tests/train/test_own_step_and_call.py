"""Models with a `train_step` of their own whose `call` says nothing, or something else, about what the step builds."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.tensorflow


def _model(names: str, call: Callable[..., Any], which: str, make: Callable[[], Any]) -> Any:
    """A model with layers of these names, and a step that returns a loss."""
    import keras
    import tensorflow as tf

    step = _steps()[which]

    class Model(keras.Model):  # type: ignore[misc]
        def __init__(self, first: Any, second: Any) -> None:
            super().__init__()
            self.first, self.second = first, second
            self.so_far = keras.metrics.Mean(name=names)

        def call(self, x: Any, training: bool = False) -> Any:
            return call(self, x)

        def train_step(self, data: Any) -> Any:
            with tf.GradientTape() as tape:
                loss = step(self, data)
            weights = self.trainable_weights
            self.optimizer.apply(tape.gradient(loss, weights), weights)
            self.so_far.update_state(loss)
            return {names: self.so_far.result()}

        @property
        def metrics(self) -> Any:
            return [self.so_far]

    model = Model(make(), make())
    model.compile(optimizer="adam")
    return model


def _dense() -> Any:
    import keras

    return keras.layers.Dense(4)


def _drawing() -> Any:
    """A layer whose initializer is made, and given a seed from Python's generator, while it is built."""
    import keras

    class Own(keras.layers.Layer):  # type: ignore[misc]
        def build(self, shape: Any) -> None:
            self.kernel = self.add_weight(shape=(shape[-1], 4), initializer="glorot_uniform", name="kernel")

        def call(self, x: Any) -> Any:
            return x @ self.kernel

    return Own()


def _steps() -> dict[str, Callable[..., Any]]:
    import tensorflow as tf

    def joined(self: Any, data: Any) -> Any:
        return tf.reduce_mean(tf.square(self.first(tf.concat([data[0], data[1]], -1))))

    def backwards(self: Any, data: Any) -> Any:
        return tf.reduce_mean(tf.square(self.first(self.second(data[0])) - 1.0))

    def of_pairs(self: Any, data: Any) -> Any:
        one, other = self(data)
        return tf.reduce_mean(tf.maximum(tf.square(one) - tf.square(other) + 0.5, 0.0))

    return {"joined": joined, "backwards": backwards, "of pairs": of_pairs}


MODELS: dict[str, Callable[[], Any]] = {
    "layers are given something else": lambda: _model("a", lambda self, x: self.first(x), "joined", _dense),
    "layers in another order": lambda: _model("b", lambda self, x: self.second(self.first(x)), "backwards", _drawing),
    "call takes all of the data": lambda: _model(
        "c", lambda self, pair: (self.first(pair[0]), self.second(pair[1])), "of pairs", _dense
    ),
}


def _with_compiled_parts(outputs: str, metrics: Any, loss: Any = "mse") -> Any:
    """The step that Keras' guide shows, with a model that is not built before it runs."""
    import keras
    import tensorflow as tf

    class Model(keras.Model):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.hidden = keras.layers.Dense(5, "relu")
            self.last = keras.layers.Dense(3, "softmax")

        def call(self, x: Any, training: bool = False) -> Any:
            found = self.last(self.hidden(x))
            return {"one": found, "two": found * 2.0} if outputs == "several" else found

        def train_step(self, data: Any) -> Any:
            x, y = data
            if outputs == "several":
                y = {"one": y, "two": y}
            with tf.GradientTape() as tape:
                found = self(x, training=True)
                loss = self.compute_loss(y=y, y_pred=found)
            weights = self.trainable_variables
            self.optimizer.apply(tape.gradient(loss, weights), weights)
            if outputs == "several":
                return self.compute_metrics(x, y, found)
            for metric in self.metrics:
                if metric.name == "loss":
                    metric.update_state(loss)
                else:
                    metric.update_state(y, found)
            return {metric.name: metric.result() for metric in self.metrics}

    model = Model()
    model.compile("adam", loss, metrics=metrics)
    return model


COMPILED: dict[str, Callable[[], Any]] = {
    "a metric by its name": lambda: _with_compiled_parts("one", ["mae"]),
    "metrics that depend on shapes": lambda: _with_compiled_parts("one", ["accuracy"], "categorical_crossentropy"),
    "a metric with a state that its first use makes": lambda: _with_compiled_parts("one", [_f1()]),
    "several outputs": lambda: _with_compiled_parts(
        "several", {"one": ["mae"], "two": ["accuracy"]}, {"one": "mse", "two": "mae"}
    ),
}


def _f1() -> Any:
    import keras

    return keras.metrics.F1Score(average="macro")


def _run(make: Callable[[], Any]) -> Any:
    import keras
    import numpy as np

    keras.utils.clear_session()
    keras.utils.set_random_seed(5)
    model = make()
    generator = np.random.default_rng(1)
    x, y = generator.random((20, 4), "float32"), np.eye(3, dtype="float32")[generator.integers(0, 3, 20)]
    history = model.fit(x, y, batch_size=8, epochs=2, shuffle=False, verbose=0).history
    names = [(metric.name, len(metric.variables)) for metric in model.metrics]
    return [history, model.built, names, [(each.path, each.numpy().tolist()) for each in model.variables]]


@pytest.mark.parametrize("name", [*MODELS, *COMPILED])
def test_what_a_step_builds_is_learned_from_the_step(name, tmp_path, caplog):
    from glowplug import train

    make = {**MODELS, **COMPILED}[name]
    expected = _run(make)
    with caplog.at_level(logging.WARNING, "glowplug.train"), train.enabled(tmp_path / "cache"):
        assert _run(make) == expected
        assert train.counts() == {"traced": 1, "stored": 1}
        assert _run(make) == expected
        assert train.counts() == {"traced": 1, "stored": 1, "restored": 1}
    assert [record.message for record in caplog.records if record.name == "glowplug.train"] == []


def _with_a_dictionary() -> Any:
    """Steps that are given a dictionary, and a `call` that takes a list."""
    import keras
    import tensorflow as tf

    class Model(keras.Model):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.hidden = keras.layers.Dense(5, "relu")
            self.last = keras.layers.Dense(3)

        def call(self, inputs: Any) -> Any:
            first, second = inputs
            return self.last(self.hidden(first) + second)

        def _loss(self, batch: Any) -> Any:
            found = self([batch["first"], batch["second"]])
            return self.compute_loss(None, batch["wanted"], found)

        def train_step(self, batch: Any) -> Any:
            with tf.GradientTape() as tape:
                loss = self._loss(batch)
            weights = self.trainable_variables
            self.optimizer.apply(tape.gradient(loss, weights), weights)
            return {"loss": loss}

        def test_step(self, batch: Any) -> Any:
            return {"loss": self._loss(batch)}

    model = Model()
    model.compile("adam", "mse")
    return model


@pytest.mark.parametrize("trained", [True, False])
def test_a_step_whose_call_takes_something_else(trained, tmp_path, caplog):
    import keras
    import numpy as np
    import tensorflow as tf

    from glowplug import train

    generator = np.random.default_rng(1)
    arrays = {
        name: generator.random((16, width), "float32") for name, width in (("first", 4), ("second", 5), ("wanted", 3))
    }
    data = tf.data.Dataset.from_tensor_slices(arrays).batch(8)

    def run() -> list[Any]:
        keras.utils.clear_session()
        keras.utils.set_random_seed(5)
        model = _with_a_dictionary()
        if trained:
            return [model.fit(data, verbose=0).history, model.evaluate(data, verbose=0)]
        model([arrays["first"], arrays["second"]])
        return [model.evaluate(data, verbose=0)]

    expected = run()
    steps = 2 if trained else 1
    with caplog.at_level(logging.WARNING, "glowplug.train"), train.enabled(tmp_path / "cache"):
        assert run() == expected
        assert train.counts() == {"traced": steps, "stored": steps}
        assert run() == expected
        assert train.counts() == {"traced": steps, "stored": steps, "restored": steps}
    assert [record.message for record in caplog.records if record.name == "glowplug.train"] == []


def _with_labels_of_its_own() -> Any:
    """A step that is given no labels: it makes them, for the loss and the metrics."""
    import keras
    import tensorflow as tf

    class Model(keras.Model):  # type: ignore[misc]
        def train_step(self, data: Any) -> Any:
            labels = tf.range(tf.shape(data)[0]) % 3
            with tf.GradientTape() as tape:
                found = self(data, training=True)
                loss = self.compute_loss(y=labels, y_pred=found)
            weights = self.trainable_variables
            self.optimizer.apply(tape.gradient(loss, weights), weights)
            return self.compute_metrics(data, labels, found)

    inputs = keras.Input((4,))
    model = Model(inputs, keras.layers.Dense(3, "softmax")(inputs))
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def test_a_step_that_makes_its_labels(tmp_path, caplog):
    import keras
    import numpy as np

    from glowplug import train

    def run() -> Any:
        keras.utils.clear_session()
        keras.utils.set_random_seed(5)
        return _with_labels_of_its_own().fit(np.ones((20, 4), "float32"), batch_size=8, epochs=2, verbose=0).history

    expected = run()
    assert {"loss", "accuracy"} <= expected.keys()
    with caplog.at_level(logging.WARNING, "glowplug.train"), train.enabled(tmp_path / "cache"):
        assert run() == expected
        assert train.counts() == {"traced": 1, "stored": 1}
        assert run() == expected
        assert train.counts() == {"traced": 1, "stored": 1, "restored": 1}
    assert [record.message for record in caplog.records if record.name == "glowplug.train"] == []
