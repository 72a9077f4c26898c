"""Models whose weights are saved and loaded: one for each way in which Keras holds variables."""

from __future__ import annotations

import keras
import numpy as np


class Block(keras.layers.Layer):
    """Layers in a list, in a dict, nested, and a weight of its own."""

    def __init__(self, **options):
        super().__init__(**options)
        self.steps = [keras.layers.Dense(6), [keras.layers.Dense(6)]]
        self.named = {"b": keras.layers.Dense(6), "a": keras.layers.LayerNormalization()}

    def build(self, shape):
        self.gain = self.add_weight(shape=(6,), name="gain")
        for layer in self._layers_in_order():
            layer.build((*shape[:-1], 6))
        super().build(shape)

    def _layers_in_order(self):
        return [self.steps[0], self.steps[1][0], self.named["b"], self.named["a"]]

    def call(self, x):
        for layer in self._layers_in_order():
            x = layer(x)
        return x * self.gain


def functional():
    inputs = keras.Input((8, 8, 3))
    x = keras.layers.Conv2D(4, 3)(inputs)
    x = keras.layers.BatchNormalization()(x)
    x = keras.layers.GlobalAveragePooling2D()(x)
    x = keras.layers.Dropout(0.5)(x)
    x = keras.layers.Dense(16, activation="relu")(x)
    return keras.Model(inputs, keras.layers.Dense(16)(x))


def sequential():
    model = keras.Sequential([keras.layers.Embedding(32, 8), keras.layers.LSTM(8), keras.layers.Dense(3)])
    model.build((None, 5))
    return model


def attention():
    inputs = keras.Input((5, 8))
    x = keras.layers.MultiHeadAttention(2, 4)(inputs, inputs)
    x = keras.layers.LayerNormalization()(x)
    return keras.Model(inputs, keras.layers.Bidirectional(keras.layers.GRU(4))(x))


def nested():
    inner = keras.Sequential([keras.Input((6,)), keras.layers.Dense(6), keras.layers.Dense(6)])
    inputs = keras.Input((6,))
    return keras.Model(inputs, Block()(inner(inputs)))


class Subclassed(keras.Model):
    def __init__(self):
        super().__init__()
        self.second = keras.layers.Dense(4)
        self.first = keras.layers.Dense(6)
        self.block = Block()

    def call(self, x):
        return self.second(self.block(self.first(x)))


def subclassed():
    model = Subclassed()
    model(np.zeros((1, 6), "float32"))
    return model


ALL = {one.__name__: one for one in (functional, sequential, attention, nested, subclassed)}


def randomize(model, seed=1):
    """Give every weight a value of its own, so that two that change places are noticed."""
    random = np.random.default_rng(seed)
    for variable in model.weights:
        variable.assign(random.normal(size=variable.shape).astype(variable.dtype))
    return model


def values(model):
    return [np.array(variable.numpy()) for variable in model.weights]


def same(left, right):
    return len(left) == len(right) and all(np.array_equal(a, b) for a, b in zip(left, right, strict=True))
