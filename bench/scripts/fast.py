"""First prediction with Glowplug: fast.py BUNDLE SHAPE DTYPE. Prints one JSON line, as stock.py does."""

import time

started_at_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
import sys

import glowplug

imported_at_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
path, shape, dtype = sys.argv[1:]
model = glowplug.load(path)
loaded_at_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
import numpy as np

x = np.ones([int(size) for size in shape.split(",")], dtype)
answer = model(x)
first_at_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
import json

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
