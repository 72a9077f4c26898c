"""Load a trained model, optimizer and all, to predict with it."""

import sys

import keras
import numpy as np

model = keras.models.load_model(sys.argv[1] + "/model.keras")
model(np.ones([1, 32], "float32"))
