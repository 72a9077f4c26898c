"""One way of getting a model with its weights, timed: weights.py MODEL WAY FILE

WAY is `load_model` (stock Keras), `build` (stock: build, then model.load_weights) or `glowplug` (build without
initialisers, then train.load_weights). Prints one line of JSON. A map only defers reading, so every weight is summed
afterwards, and the time to that is told apart.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2] / "src"))

import keras
import models
import tensorflow as tf

tf.zeros(()).numpy()  # the runtime has started


def load_model(name: str, path: str):
    return keras.models.load_model(path)


def build(name: str, path: str):
    model = models.BUILDERS[name]()
    model.load_weights(path)
    return model


def glowplug(name: str, path: str):
    from glowplug import train

    with train.skip_init():
        model = models.BUILDERS[name]()
        train.load_weights(model, path)
    return model


def main() -> None:
    name, way, path = sys.argv[1:]
    began = time.monotonic_ns()
    model = {"load_model": load_model, "build": build, "glowplug": glowplug}[way](name, path)
    loaded = time.monotonic_ns()
    total = [float(tf.reduce_sum(weight)) for weight in model.weights]
    touched = time.monotonic_ns()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    result = {"loaded_ns": loaded - began, "touched_ns": touched - began, "max_rss_bytes": peak, "sums": total}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
