"""A Keras model built, compiled and fitted anew in every round: memory grows. ROUNDS"""

import sys

import keras
import numpy as np

x, y = np.ones((32, 16), "float32"), np.ones((32, 1), "float32")
for _ in range(int(sys.argv[1])):
    layers = [keras.layers.Dense(32, activation="relu") for _ in range(10)]
    model = keras.Sequential([keras.Input((16,)), *layers, keras.layers.Dense(1)])
    model.compile("adam", "mse")
    model.fit(x, y, verbose=0)
print("done")
