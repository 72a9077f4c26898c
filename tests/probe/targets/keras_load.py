"""Load a Keras file, with or without compiling, and predict twice. PATH"""

import sys

import keras
import numpy as np

model = keras.models.load_model(sys.argv[1])
x = np.zeros((1, *model.input_shape[1:]), "float32")
model.predict(x, verbose=0)
model.predict(x, verbose=0)
print("done")
