"""Load a network from `.h5` and predict once: load_h5.py FOLDER"""

import sys

import keras
import numpy as np

model = keras.models.load_model(sys.argv[1] + "/network.h5", compile=False)
model.predict(np.ones([1, 224, 224, 3], "float32"), verbose=0)
