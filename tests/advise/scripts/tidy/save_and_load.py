"""A dense model that is saved, loaded and used."""

import sys

import keras
import numpy as np

model = keras.Sequential([keras.Input([8]), keras.layers.Dense(16, activation="relu"), keras.layers.Dense(1)])
model.save(sys.argv[1] + "/model.keras")
keras.models.load_model(sys.argv[1] + "/model.keras").predict(np.ones([4, 8], "float32"), verbose=0)
