"""Build a model whose kernels are orthogonal matrices."""

import keras

model = keras.Sequential([keras.Input([1500])])
for _ in range(6):
    model.add(keras.layers.Dense(1500, kernel_initializer="orthogonal"))
