"""A new model for each trial: Keras traces the training step for each."""

import keras
import numpy as np

x, y = np.ones([64, 16], "float32"), np.ones([64, 1], "float32")


def build():
    layers = [keras.layers.Dense(16, activation="relu") for _ in range(4)]
    model = keras.Sequential([keras.Input([16]), *layers, keras.layers.Dense(1)])
    model.compile("adam", "mse")
    return model


for trial in range(5):
    keras.utils.set_random_seed(trial)
    model = build()
    model.fit(x, y, batch_size=32, verbose=0)
