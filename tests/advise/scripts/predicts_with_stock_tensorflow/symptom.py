"""A model is loaded with Keras, to predict."""

import sys

import keras
import numpy as np

model = keras.models.load_model(sys.argv[1] + "/model.keras")
print(model.predict(np.ones([4, 8], "float32"), verbose=0).shape)
