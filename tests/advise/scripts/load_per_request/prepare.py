"""Write a Keras model of many layers."""

import sys

import keras

layers = [keras.layers.Dense(64, activation="relu") for _ in range(40)]
keras.Sequential([keras.Input([64]), *layers]).save(sys.argv[1] + "/model.keras")
