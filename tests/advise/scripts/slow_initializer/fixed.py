"""Glorot kernels: uniform numbers."""

import keras
import numpy as np

layers = [keras.layers.Dense(1400, kernel_initializer="glorot_uniform") for _ in range(6)]
model = keras.Sequential([keras.Input([1400]), *layers])
model.predict(np.ones([1, 1400], "float32"), verbose=0)
