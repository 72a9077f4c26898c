"""A program that asks a native standby for a model: BUNDLE SHAPE DTYPE. Prints how long until it had an answer."""

import json
import sys
import time
from statistics import median

import numpy as np

import glowplug
from glowplug.loader import remote  # imported beforehand: it is no part of the request


def now() -> int:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


path, shape, dtype = sys.argv[1:4]
x = np.ones([int(size) for size in shape.split(",")], dtype)
asked = now()
model = glowplug.load(path, standby=True)
loaded = now()
model(x)
first = now()
if not isinstance(model, remote.RemoteModel):
    sys.exit(f"no standby: {model.info.notes}")
steady = []
for _ in range(15):
    began = now()
    model(x)
    steady.append(now() - began)
model.close()
print(json.dumps({"load_ns": loaded - asked, "first_ns": first - asked, "steady_ns": int(median(steady))}))
