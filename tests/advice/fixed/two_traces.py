"""Everything exists before the first step: one trace."""

import keras
import numpy as np

inputs = x = keras.Input([64])
for _ in range(80):
    x = keras.layers.LayerNormalization()(x + keras.layers.Dense(64, activation="gelu")(x))
model = keras.Model(inputs, keras.layers.Dense(1)(x))
model.compile("adam", "mse")
model.optimizer.build(model.trainable_variables)
model.fit(np.ones([16, 64], "float32"), np.ones([16, 1], "float32"), batch_size=8, verbose=0)
