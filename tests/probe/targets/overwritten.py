"""A model is built with random weights, then its weights are loaded from a file. Prints nothing."""

import sys

import keras

model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(256), keras.layers.Dense(8)])
path = sys.argv[1]
model.save_weights(path)
again = keras.Sequential([keras.Input((64,)), keras.layers.Dense(256), keras.layers.Dense(8)])
again.load_weights(path)
