"""Builds, compiles and fits a new model in each round."""

import keras
import numpy as np


def build():
    layers = [keras.layers.Dense(64, activation="relu") for _ in range(10)]
    model = keras.Sequential([keras.Input([32]), *layers, keras.layers.Dense(1)])
    model.compile("adam", "mse")
    return model


for _ in range(8):
    model = build()
    model.fit(np.ones([16, 32], "float32"), np.ones([16, 1], "float32"), verbose=0)  # the line
