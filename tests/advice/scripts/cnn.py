"""A small convolutional network, trained for two steps."""

import keras  # the line
import numpy as np

model = keras.Sequential(
    [
        keras.Input([28, 28, 1]),
        keras.layers.Conv2D(8, 3, activation="relu"),
        keras.layers.MaxPooling2D(),
        keras.layers.Flatten(),
        keras.layers.Dense(10, activation="softmax"),
    ]
)
model.compile("adam", "sparse_categorical_crossentropy")
model.fit(np.ones([16, 28, 28, 1], "float32"), np.ones([16]), batch_size=8, verbose=0)
