"""A program whose step is traced in every run: an encoder with a layer that reads the clock while it is traced.

Like the script that `bench/train_start.py` measures, it leaves `marks` and `losses` behind: the marks on the system's
monotonic clock, and the loss of each step.
"""

import time

import keras
import numpy as np
from keras import layers

marks = []
losses = []


def mark(name: str) -> None:
    marks.append((name, time.perf_counter_ns()))


mark("import")


class Clock(layers.Layer):
    def call(self, x):
        return x if time.time() > 0 else -x


class Marks(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        losses.append(float(logs["loss"]))
        mark(f"step{batch + 1}")


def encoder(depth: int = 12, width: int = 256, heads: int = 4, words: int = 128) -> keras.Model:
    x = inputs = keras.Input((words,), dtype="int32")
    x = layers.Embedding(2_000, width)(x)
    for _ in range(depth):
        attended = layers.MultiHeadAttention(heads, width // heads)(x, x)
        x = layers.LayerNormalization()(x + layers.Dropout(0.1)(attended))
        inner = layers.Dense(width)(layers.Dense(4 * width, activation="gelu")(x))
        x = layers.LayerNormalization()(x + layers.Dropout(0.1)(inner))
    return keras.Model(inputs, layers.Dense(10)(layers.GlobalAveragePooling1D()(Clock()(x))))


keras.utils.set_random_seed(1)
model = encoder()
mark("build")
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
mark("compile")
x, y = np.arange(24 * 128, dtype="int32").reshape(24, 128) % 2_000, np.zeros(24, "int32")
model.fit(x, y, batch_size=8, epochs=1, shuffle=False, verbose=0, callbacks=[Marks()])
