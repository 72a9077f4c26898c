"""Glorot kernels: uniform numbers."""

import keras
import numpy as np

layers = [keras.layers.Dense(900, kernel_initializer="glorot_uniform") for _ in range(6)]
model = keras.Sequential([keras.Input([900]), *layers])
model.predict(np.ones([1, 900], "float32"), verbose=0)
