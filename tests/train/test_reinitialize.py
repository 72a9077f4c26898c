"""A model that starts anew in place: fresh values, nothing traced, nothing created."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from glowplug import train
from glowplug.core.errors import UsageError, WeightsError

pytestmark = pytest.mark.tensorflow

X = np.random.default_rng(0).normal(size=(16, 6, 8)).astype("float32")
Y = np.random.default_rng(1).normal(size=(16, 1)).astype("float32")


def build(optimizer="adam"):
    model = keras.Sequential(
        [
            keras.Input((6, 8)),
            keras.layers.LSTM(4, return_sequences=True),
            keras.layers.BatchNormalization(),
            keras.layers.Dropout(0.1),
            keras.layers.Flatten(),
            keras.layers.Dense(8, kernel_initializer="he_normal", bias_initializer=keras.initializers.Constant(0.5)),
            keras.layers.Dense(1),
        ]
    )
    model.compile(optimizer, "mse", metrics=["mae"])
    return model


def values(variables):
    return [np.array(variable) for variable in variables]


def test_everything_starts_anew():
    model = build()
    model.fit(X, Y, epochs=2, verbose=0)
    trained = values(model.variables)
    identity = [id(variable.value) for variable in (*model.variables, *model.optimizer.variables)]
    train.reinitialize(model, seed=1)
    assert [id(variable.value) for variable in (*model.variables, *model.optimizer.variables)] == identity
    assert all(not np.array_equal(a, b) for a, b in zip(trained, values(model.trainable_variables), strict=False))
    lstm, norm, _, _, first, last = model.layers
    np.testing.assert_array_equal(lstm.cell.bias, [0] * 4 + [1] * 4 + [0] * 8)  # the forget gate begins at one
    np.testing.assert_allclose(
        lstm.cell.recurrent_kernel.numpy() @ lstm.cell.recurrent_kernel.numpy().T, np.eye(4), atol=1e-5
    )
    np.testing.assert_array_equal(norm.moving_mean, np.zeros(4))
    np.testing.assert_array_equal(norm.moving_variance, np.ones(4))
    np.testing.assert_array_equal(first.bias, np.full(8, 0.5))
    assert np.abs(last.kernel).max() <= np.sqrt(6 / 9)
    assert int(model.optimizer.iterations.numpy()) == 0
    for slot in model.optimizer.variables[2:]:
        assert not np.any(slot)


def test_a_round_is_what_a_first_round_is():
    model = build()
    train.reinitialize(model, seed=3)
    first = model.fit(X, Y, epochs=3, verbose=0, shuffle=False).history
    train.reinitialize(model, seed=3)
    second = model.fit(X, Y, epochs=3, verbose=0, shuffle=False).history
    np.testing.assert_allclose(first["loss"], second["loss"], rtol=1e-5)
    np.testing.assert_allclose(first["mae"], second["mae"], rtol=1e-5)
    train.reinitialize(model, seed=4)
    third = model.fit(X, Y, epochs=3, verbose=0, shuffle=False).history
    assert abs(first["loss"][0] - third["loss"][0]) > 1e-4


def test_without_a_seed_each_start_differs():
    model = build()
    train.reinitialize(model)
    first = np.array(model.layers[-1].kernel)
    train.reinitialize(model)
    assert not np.array_equal(first, model.layers[-1].kernel)


def test_an_initializer_with_a_seed_keeps_it():
    layer = keras.layers.Dense(3, kernel_initializer=keras.initializers.GlorotUniform(seed=9))
    model = keras.Sequential([keras.Input((2,)), layer])
    before = np.array(layer.kernel)
    layer.kernel.assign(np.zeros((2, 3)))
    train.reinitialize(model, seed=1)
    np.testing.assert_array_equal(layer.kernel, before)


class Counting(keras.layers.Layer):
    """Counts how often Python runs it: once for each trace."""

    calls = 0

    def call(self, inputs):
        Counting.calls += 1
        return inputs


def test_nothing_is_traced_and_nothing_created():
    import tensorflow as tf

    model = keras.Sequential([keras.Input((4,)), Counting(), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    x, y = tf.ones((8, 4)), tf.ones((8, 1))
    model.train_on_batch(x, y)
    step, calls = model.train_function, Counting.calls
    with tf.variable_creator_scope(lambda *_, **__: pytest.fail("a variable was created")):
        for _ in range(3):
            train.reinitialize(model)
            model.train_on_batch(x, y)
    assert model.train_function is step
    assert Counting.calls == calls


@pytest.mark.parametrize("name", ["sgd", "adagrad", "ftrl", "nadam", "rmsprop", "adamw", "lion", "adadelta"])
def test_slots_begin_as_those_of_a_new_optimizer(name):
    fresh = build(name)
    fresh.optimizer.build(fresh.trainable_variables)
    model = build(name)
    model.fit(X, Y, verbose=0)
    train.reinitialize(model)
    for one, other in zip(model.optimizer.variables, fresh.optimizer.variables, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_optimizer_is_left_alone_when_asked():
    model = build()
    model.fit(X, Y, verbose=0)
    before = values(model.optimizer.variables)
    train.reinitialize(model, optimizer=False)
    for one, other in zip(before, values(model.optimizer.variables), strict=True):
        np.testing.assert_array_equal(one, other)


def test_frozen_layers_and_attention():
    inputs = keras.Input((6, 8))
    attention = keras.layers.MultiHeadAttention(2, 4)
    norm = keras.layers.LayerNormalization()
    model = keras.Model(inputs, norm(attention(inputs, inputs)))
    attention.trainable = False
    zeros = [np.zeros(variable.shape) for variable in model.variables]
    model.set_weights(zeros)
    train.reinitialize(model, seed=2)
    assert np.any(attention._query_dense.kernel)
    np.testing.assert_array_equal(norm.gamma, np.ones(8))


class Own(keras.layers.Layer):
    """Cannot be made from its configuration."""

    def __init__(self, units, secret):
        super().__init__()
        self.units, self.secret = units, secret

    def build(self, shape):
        self.kernel = self.add_weight(shape=(shape[-1], self.units), initializer="he_normal", name="kernel")


def test_a_weight_of_unknown_origin_is_named_and_nothing_is_touched():
    known, own = keras.layers.Dense(3), Own(2, secret=object())
    model = keras.Sequential([known, own])
    known.build((None, 4))
    own.build((None, 3))
    model.built = True
    before = np.array(known.kernel)
    with pytest.raises(WeightsError, match="kernel"):
        train.reinitialize(model)
    np.testing.assert_array_equal(known.kernel, before)
    own.kernel_initializer = "he_normal"
    train.reinitialize(model)
    assert not np.array_equal(known.kernel, before)


def test_an_unbuilt_model_is_refused():
    with pytest.raises(UsageError, match="built"):
        train.reinitialize(keras.Sequential([keras.layers.Dense(1)]))


def test_twin_for_sessions():
    import tensorflow as tf

    v1 = tf.compat.v1
    graph = tf.Graph()
    with graph.as_default(), v1.Session() as session:
        v1.set_random_seed(1)
        weights = v1.get_variable("weights", (4, 4), initializer=v1.glorot_uniform_initializer())
        step = v1.train.AdamOptimizer(0.1).minimize(tf.reduce_sum(weights**2))
        train.reinitialize_session(session)
        graph.finalize()  # from here on a new operation raises
        first = session.run(weights)
        session.run(step)
        train.reinitialize_session(session)
        second = session.run(weights)
        assert not np.array_equal(first, second)
        slots = [each for each in graph.get_collection("variables") if "Adam" in each.name]
        assert slots
        assert not any(np.any(session.run(slot)) for slot in slots)
        assert np.abs(second).max() <= np.sqrt(6 / 8)


def test_twin_refuses_variables_of_another_graph():
    import tensorflow as tf

    v1 = tf.compat.v1
    with tf.Graph().as_default():
        stranger = v1.get_variable("stranger", (1,))
    with tf.Graph().as_default(), v1.Session() as session, pytest.raises(UsageError, match="stranger"):
        train.reinitialize_session(session, [stranger])
