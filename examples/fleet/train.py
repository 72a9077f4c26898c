"""A training script whose traces are baked into an image: it prints its losses."""

import keras
import numpy as np

keras.utils.set_random_seed(1)
model = keras.Sequential([keras.Input((16,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(1)])
model.compile("adam", "mse")
x = np.linspace(-1, 1, 64 * 16, dtype="float32").reshape(64, 16)
history = model.fit(x, x.sum(axis=1), epochs=2, batch_size=16, verbose=0)
print("losses", *history.history["loss"])
