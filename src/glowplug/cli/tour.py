"""The programs that `glowplug demo` runs, as text: each is a script of its own, started in a fresh process.

They print one JSON line. `at_ns` is the monotonic clock, which all processes of a machine share, when the first
result was there.
"""

from __future__ import annotations

BUILD = '''\
"""Builds a small convolutional network with random weights: build_model.py DIRECTORY"""
import sys

import keras
import numpy
from keras import layers

keras.utils.set_random_seed(1)
model = keras.Sequential([keras.Input((64, 64, 3))])
for width in (32, 64, 128, 256):
    model.add(layers.Conv2D(width, 3, padding="same", use_bias=False))
    model.add(layers.BatchNormalization())
    model.add(layers.ReLU())
    model.add(layers.MaxPooling2D())
model.add(layers.GlobalAveragePooling2D())
model.add(layers.Dense(10, activation="softmax"))

random = numpy.random.default_rng(1)  # fresh batch norms do nothing: give them values like a trained model's
for layer in model.layers:
    if isinstance(layer, layers.BatchNormalization):
        size = layer.gamma.shape[0]
        layer.set_weights(
            [random.uniform(0.8, 1.2, size), *random.normal(0, 0.1, (2, size)), random.uniform(0.8, 1.2, size)]
        )
model.export(sys.argv[1], verbose=False)
'''

_MEASURE = """
answer = predict(image)
at_ns = time.monotonic_ns()
steady_ns = []
for _ in range(20):
    began = time.monotonic_ns()
    predict(image)
    steady_ns.append(time.monotonic_ns() - began)
print(
    json.dumps(
        {
            "at_ns": at_ns,
            "steady_ns": int(statistics.median(steady_ns)),
            "max_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            "answer": answer.ravel().tolist(),
        }
    )
)
"""

STOCK = (
    '''\
"""The first prediction with stock TensorFlow: stock.py SAVED_MODEL"""
import json
import resource
import statistics
import sys
import time

import numpy
import tensorflow

model = tensorflow.saved_model.load(sys.argv[1])
signature = model.signatures["serving_default"]
(name,) = signature.structured_input_signature[1]
image = numpy.linspace(0, 1, 64 * 64 * 3, dtype="float32").reshape(1, 64, 64, 3)


def predict(image):
    (output,) = signature(**{name: tensorflow.constant(image)}).values()
    return output.numpy()

'''
    + _MEASURE
)

FAST = (
    '''\
"""The first prediction with Glowplug: fast.py BUNDLE"""
import json
import resource
import statistics
import sys
import time

import glowplug
import numpy

predict = glowplug.load(sys.argv[1])
image = numpy.linspace(0, 1, 64 * 64 * 3, dtype="float32").reshape(1, 64, 64, 3)
'''
    + _MEASURE
)

TRAIN = '''\
"""A training program that knows nothing of Glowplug: train.py [LAYERS]"""
import json
import sys
import time

import keras
import numpy
from keras import layers

keras.utils.set_random_seed(1)
inputs = x = keras.Input((64,))
for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 24):
    x = layers.LayerNormalization()(x + layers.Dense(64, activation="gelu")(x))
model = keras.Model(inputs, layers.Dense(1)(x))
model.compile("adam", "mse")
data = numpy.linspace(-1, 1, 16 * 64, dtype="float32").reshape(16, 64)
loss = model.train_on_batch(data, data[:, :1])
print(json.dumps({"at_ns": time.monotonic_ns(), "loss": float(loss)}))
'''

SCRIPTS = {"build_model.py": BUILD, "stock.py": STOCK, "fast.py": FAST, "train.py": TRAIN}
