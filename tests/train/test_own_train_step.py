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


def test_layers_that_are_not_built_are_named(tmp_path, caplog):
    import keras
    import tensorflow as tf

    from glowplug import train

    def make() -> Any:
        class Model(keras.Model):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__()
                self.inside = keras.layers.Dense(4, name="inside")

            def train_step(self, data: Any) -> Any:
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean(tf.square(self.inside(data) - data))
                weights = self.inside.trainable_weights
                self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=False))
                return {"loss": loss}

        model = Model()
        model.compile("sgd")
        return model

    expected = _run(make)
    with caplog.at_level(logging.WARNING, "glowplug.train"), train.enabled(tmp_path / "cache"):
        assert _run(make) == expected
        assert train.counts() == {"traced": 1, "refused": 1}
    assert "its layer inside is not built" in caplog.text
