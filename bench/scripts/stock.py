"""First prediction with stock TensorFlow: stock.py SAVED_MODEL SHAPE DTYPE. Prints one JSON line.

`*_at_ns` are readings of CLOCK_MONOTONIC, which the parent shares.
"""

import time

started_at_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
import json
import sys

import numpy as np
import tensorflow as tf

imported_at_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
path, shape, dtype = sys.argv[1:]
x = np.ones([int(size) for size in shape.split(",")], dtype)
model = tf.saved_model.load(path)
signature = model.signatures["serving_default"]
(name,) = signature.structured_input_signature[1]
loaded_at_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
(output,) = signature(**{name: tf.constant(x)}).values()
answer = output.numpy()
first_at_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
print(
    json.dumps(
        {
            "started_at_ns": started_at_ns,
            "imported_at_ns": imported_at_ns,
            "loaded_at_ns": loaded_at_ns,
            "first_at_ns": first_at_ns,
            "head": [float(value) for value in answer.ravel()[:3]],
        }
    )
)
