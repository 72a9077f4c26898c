"""Models with a `train_step` of their own and no `call`: adversarial networks, autoencoders, distillers."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.tensorflow


def _adversarial() -> Any:
    """Two networks, two optimizers, two metrics; labels with noise from the global seed."""
    import keras
    import tensorflow as tf
    from keras import layers, ops

    class Adversarial(keras.Model):  # type: ignore[misc]
        def __init__(self, discriminator: Any, generator: Any) -> None:
            super().__init__()
            self.discriminator = discriminator
            self.generator = generator
            self.seed_generator = keras.random.SeedGenerator(1337)

        def compile(self, d_optimizer: Any, g_optimizer: Any, loss_fn: Any) -> None:
            super().compile()
            self.d_optimizer = d_optimizer
            self.g_optimizer = g_optimizer
            self.loss_fn = loss_fn
            self.d_loss = keras.metrics.Mean(name="d_loss")
            self.g_loss = keras.metrics.Mean(name="g_loss")

        @property
        def metrics(self) -> Any:
            return [self.d_loss, self.g_loss]

        def train_step(self, real: Any) -> Any:
            count = ops.shape(real)[0]
            latent = keras.random.normal((count, 3), seed=self.seed_generator)
            both = ops.concatenate([self.generator(latent), real], axis=0)
            labels = ops.concatenate([ops.ones((count, 1)), ops.zeros((count, 1))], axis=0)
            labels += 0.05 * tf.random.uniform(tf.shape(labels))
            with tf.GradientTape() as tape:
                d_loss = self.loss_fn(labels, self.discriminator(both))
            weights = self.discriminator.trainable_weights
            self.d_optimizer.apply_gradients(zip(tape.gradient(d_loss, weights), weights, strict=False))
            latent = keras.random.normal((count, 3), seed=self.seed_generator)
            with tf.GradientTape() as tape:
                g_loss = self.loss_fn(ops.zeros((count, 1)), self.discriminator(self.generator(latent)))
            weights = self.generator.trainable_weights
            self.g_optimizer.apply_gradients(zip(tape.gradient(g_loss, weights), weights, strict=False))
            self.d_loss.update_state(d_loss)
            self.g_loss.update_state(g_loss)
            return {"d_loss": self.d_loss.result(), "g_loss": self.g_loss.result()}

    discriminator = keras.Sequential([keras.Input((4,)), layers.Dense(5, "relu"), layers.Dense(1)])
    generator = keras.Sequential([keras.Input((3,)), layers.Dense(5, "relu"), layers.Dense(4)])
    model = Adversarial(discriminator, generator)
    model.compile(
        keras.optimizers.Adam(0.01), keras.optimizers.RMSprop(0.02), keras.losses.BinaryCrossentropy(from_logits=True)
    )
    return model


def _autoencoder() -> Any:
    import keras
    import tensorflow as tf
    from keras import layers, ops

    class Sampling(layers.Layer):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.seed_generator = keras.random.SeedGenerator(7)

        def call(self, inputs: Any) -> Any:
            mean, spread = inputs
            noise = keras.random.normal(ops.shape(mean), seed=self.seed_generator)
            return mean + ops.exp(0.5 * spread) * noise

    class Autoencoder(keras.Model):  # type: ignore[misc]
        def __init__(self, encoder: Any, decoder: Any) -> None:
            super().__init__()
            self.encoder, self.decoder = encoder, decoder
            self.total = keras.metrics.Mean(name="loss")

        @property
        def metrics(self) -> Any:
            return [self.total]

        def train_step(self, data: Any) -> Any:
            with tf.GradientTape() as tape:
                mean, spread, sampled = self.encoder(data)
                wrong = ops.mean(ops.square(data - self.decoder(sampled)))
                total = wrong - 0.5 * ops.mean(1 + spread - ops.square(mean) - ops.exp(spread))
            gradients = tape.gradient(total, self.trainable_weights)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_weights, strict=False))
            self.total.update_state(total)
            return {"loss": self.total.result()}

    data = keras.Input((4,))
    hidden = layers.Dense(6, "relu")(data)
    parts = [layers.Dense(2)(hidden), layers.Dense(2)(hidden)]
    encoder = keras.Model(data, [*parts, Sampling()(parts)])
    decoder = keras.Sequential([keras.Input((2,)), layers.Dense(4)])
    model = Autoencoder(encoder, decoder)
    model.compile(optimizer=keras.optimizers.Adam(0.01))
    return model


def _with_call() -> Any:
    """It has `call`, and a second optimizer that Keras does not know."""
    import keras
    import tensorflow as tf

    class Two(keras.Model):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = keras.layers.Dense(4), keras.layers.Dense(4)
            self.slow = keras.optimizers.SGD(0.001, momentum=0.9)

        def call(self, x: Any) -> Any:
            return self.second(self.first(x))

        def train_step(self, data: Any) -> Any:
            with tf.GradientTape(persistent=True) as tape:
                loss = tf.reduce_mean(tf.square(self(data, training=True) - data))
            for optimizer, layer in ((self.optimizer, self.second), (self.slow, self.first)):
                weights = layer.trainable_weights
                optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=False))
            return {"loss": loss}

    model = Two()
    model.compile(optimizer="adam")
    return model


MODELS: dict[str, Callable[[], Any]] = {
    "adversarial": _adversarial,
    "autoencoder": _autoencoder,
    "two optimizers": _with_call,
}


def _run(make: Callable[[], Any]) -> list[Any]:
    import keras
    import numpy as np

    keras.utils.clear_session()  # automatic names of outputs begin again, as in the next process
    keras.utils.set_random_seed(5)
    model = make()
    data = np.random.default_rng(1).random((20, 4), "float32")
    history = model.fit(data, batch_size=8, epochs=2, shuffle=False, verbose=0).history
    return [history, [variable.numpy().tolist() for variable in model.variables]]


@pytest.mark.parametrize("name", MODELS)
def test_a_train_step_of_ones_own(name, tmp_path, caplog):
    from glowplug import train

    expected = _run(MODELS[name])
    with caplog.at_level(logging.WARNING, "glowplug.train"), train.enabled(tmp_path / "cache"):
        assert _run(MODELS[name]) == expected
        assert train.counts() == {"traced": 1, "stored": 1}
        assert _run(MODELS[name]) == expected
        assert train.counts() == {"traced": 1, "stored": 1, "restored": 1}
    assert [record.message for record in caplog.records if record.name == "glowplug.train"] == []


def test_what_is_built_depends_on_the_code(tmp_path):
    """Another step that gives the same optimizers other weights is another program."""
    import keras
    import tensorflow as tf

    from glowplug import train

    def make(swapped: bool) -> Any:
        class Model(keras.Model):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__()
                self.parts = [keras.layers.Dense(4), keras.layers.Dense(4)]
                for each in self.parts:
                    each.build((None, 4))
                self.optimizers = [keras.optimizers.SGD(0.01, momentum=0.9), keras.optimizers.SGD(0.01, momentum=0.5)]

            def train_step(self, data: Any) -> Any:
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean(tf.square(self.parts[1](self.parts[0](data)) - data))
                pairs = [each.trainable_weights for each in self.parts]
                gradients = tape.gradient(loss, pairs)
                for number in (0, 1):
                    other = 1 - number if swapped else number
                    self.optimizers[number].apply_gradients(zip(gradients[other], pairs[other], strict=False))
                return {"loss": loss}

        model = Model()
        model.compile()
        return model

    expected = [_run(lambda value=value: make(value)) for value in (False, True)]
    assert expected[0] != expected[1]
    with train.enabled(tmp_path / "cache"):
        for _ in range(2):
            assert [_run(lambda value=value: make(value)) for value in (False, True)] == expected
        assert train.counts() == {"traced": 2, "stored": 2, "restored": 2}


def _unbuilt(make_parts: Callable[[], list[Any]], between: Callable[[], None] = lambda: None) -> Callable[[], Any]:
    """A model without `call` whose parts are built by its first step, one after the other."""
    import keras
    import tensorflow as tf

    class Model(keras.Model):  # type: ignore[misc]
        def __init__(self, parts: list[Any]) -> None:
            super().__init__()
            self.parts = parts
            self.loss_so_far = keras.metrics.Mean(name="loss")

        def train_step(self, data: Any) -> Any:
            with tf.GradientTape() as tape:
                found = data
                for part in self.parts:
                    between()
                    found = part(found)
                loss = tf.reduce_mean(tf.square(found - data))
            weights = self.trainable_weights
            self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=False))
            self.loss_so_far.update_state(loss)
            return {"loss": self.loss_so_far.result()}

    def make() -> Any:
        model = Model(make_parts())
        model.compile(keras.optimizers.Adam(0.01))
        return model

    return make


def _layers_that_draw() -> list[Any]:
    """Their initializers are made, and given a seed from Python's generator, while they are built."""
    import keras

    class Own(keras.layers.Layer):  # type: ignore[misc]
        def build(self, shape: Any) -> None:
            self.kernel = self.add_weight(shape=(shape[-1], 4), initializer="glorot_uniform", name="kernel")

        def call(self, x: Any) -> Any:
            return x @ self.kernel

    class Outer(keras.layers.Layer):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.own = Own()

        def call(self, x: Any) -> Any:
            return self.own(x)

    return [Own(), Outer(), Own()]


def _attention() -> list[Any]:
    """It makes layers of its own while it is built, and is called with two inputs."""
    import keras
    from keras import layers, ops

    class Attention(layers.Layer):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.inner = layers.MultiHeadAttention(2, 3)
            self.norm = layers.BatchNormalization()

        def call(self, x: Any) -> Any:
            rows = ops.expand_dims(x, 1)
            return self.norm(ops.squeeze(self.inner(rows, rows), 1))

    return [Attention(), keras.Sequential([layers.Dense(3, "relu"), layers.Dropout(0.1, seed=2), layers.Dense(4)])]


def _layers_by_name() -> list[Any]:
    """Code that puts names together, so that those of symbolic tensors are in the key: Keras makes some for its model,
    and others on the way to them.
    """
    import keras

    class Holder(keras.layers.Layer):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.inner_1 = _sequential(5)

        def call(self, x: Any) -> Any:
            return getattr(self, f"inner_{self.name and 1}")(x)

    return [Holder(), keras.layers.Dense(4), Holder(), _sequential(3)]


def _layers_that_a_build_makes() -> list[Any]:
    """They are built when they are first called, with weights that are drawn then."""
    import keras
    from keras import layers, ops

    class Inner(layers.Layer):  # type: ignore[misc]
        def build(self, shape: Any) -> None:
            self.pair = [layers.Dense(5), layers.Dense(4)]

        def call(self, x: Any) -> Any:
            return self.pair[1](self.pair[0](x))

    class Outer(layers.Layer):  # type: ignore[misc]
        def build(self, shape: Any) -> None:
            self.projection = Inner()
            self.positions = layers.Embedding(3, 4)

        def call(self, x: Any) -> Any:
            return self.projection(x) + self.positions(ops.arange(1))

    return [Outer(), keras.layers.Dense(4), Outer()]


UNBUILT: dict[str, Callable[[], list[Any]]] = {
    "layers that a build makes": _layers_that_a_build_makes,
    "layers by name": _layers_by_name,
    "layers that draw": _layers_that_draw,
    "attention": _attention,
    "sequential": lambda: [_sequential(5), _sequential(4)],
}


def _sequential(units: int) -> Any:
    import keras

    return keras.Sequential([keras.layers.Dense(units, "relu"), keras.layers.Dense(4)])


@pytest.mark.parametrize("name", UNBUILT)
def test_layers_that_the_first_step_builds(name, tmp_path, caplog):
    from glowplug import train

    paths = []

    def run() -> Any:
        models = []
        found = _run(lambda: models.append(_unbuilt(UNBUILT[name])()) or models[0])
        paths.append([variable.path for variable in models[0].variables])
        return found

    expected = run()
    with caplog.at_level(logging.WARNING, "glowplug.train"), train.enabled(tmp_path / "cache"):
        assert run() == expected
        assert train.counts() == {"traced": 1, "stored": 1}
        assert run() == expected
        assert train.counts() == {"traced": 1, "stored": 1, "restored": 1}
    assert paths[0] == paths[1] == paths[2]
    assert [record.message for record in caplog.records if record.name == "glowplug.train"] == []


def test_nothing_is_built_ahead_where_others_draw_in_between(tmp_path, caplog):
    """The weights of the second layer depend on what was drawn before it is built."""
    import random

    from glowplug import train

    make = _unbuilt(_layers_that_draw, between=lambda: random.seed(random.random()))
    expected = _run(make)
    with caplog.at_level(logging.WARNING, "glowplug.train"), train.enabled(tmp_path / "cache"):
        assert _run(make) == expected
        assert _run(make) == expected
        assert train.counts() == {"traced": 2, "refused": 2}


def test_arguments_of_builds_keep_their_types():
    import json

    from glowplug.train.fingerprint.errors import NoKeyError
    from glowplug.train.trainer.learned_builds import decoded, encoded

    for value in [((None, 4),), {"a": [(1, 2), (3,)], "b": None}, (), [], {}, [["x"], True]]:
        assert decoded(json.loads(json.dumps(encoded(value)))) == value
    with pytest.raises(NoKeyError, match="with a set"):
        encoded({1})
