"""A saved model and a fit, with the script's own marks on stdout as JSON. SAVED_MODEL"""

import json
import sys
import time
from pathlib import Path

marks = {}
times = [time.perf_counter_ns()]


def mark(name):
    times.append(time.perf_counter_ns())
    marks[name] = times[-1] - times[-2]


import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

mark("import")
loaded = tf.saved_model.load(sys.argv[1])
mark("load")
call = loaded.signatures["serving_default"]
name = next(iter(call.structured_input_signature[1]))
spec = call.structured_input_signature[1][name]
value = tf.zeros([dim or 2 for dim in spec.shape], spec.dtype)
mark("input")
call(**{name: value})
mark("first")
call(**{name: value})
mark("second")

import keras  # noqa: E402

mark("keras")
model = keras.Sequential([keras.Input((16,)), *(keras.layers.Dense(64, activation="relu") for _ in range(6))])
model.add(keras.layers.Dense(1))
mark("build")
model.compile("adam", "mse")
mark("compile")


class Marks(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        mark(f"step{batch + 1}")


model.fit(np.ones((96, 16), "float32"), np.ones((96, 1), "float32"), batch_size=32, verbose=0, callbacks=[Marks()])
Path(sys.argv[2]).write_text(json.dumps(marks))
