"""Keras 2: build, fit, save weights, load them into a second model, predict."""

import tempfile
from pathlib import Path

import numpy as np
import tf_keras as keras


def build():
    model = keras.Sequential([keras.layers.Dense(16, activation="relu", input_shape=(8,)), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    return model


model = build()
model.fit(np.ones((64, 8), "float32"), np.ones((64, 1), "float32"), batch_size=8, verbose=0)
with tempfile.TemporaryDirectory() as directory:
    path = str(Path(directory) / "model.keras")
    model.save(path)
    keras.models.load_model(path).predict(np.ones((4, 8), "float32"), verbose=0)
print("done")
