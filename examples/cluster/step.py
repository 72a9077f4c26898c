"""A training script as many people start it on many workers. `glowplug.train.enable()` is the only line of ours."""

from __future__ import annotations

import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


def run(seed: int = 0) -> dict[str, float | int]:
    """Build a model and take the first step; return the loss, the time, and what the trace cache did."""
    began = time.perf_counter()
    import keras
    import numpy as np

    from glowplug import train

    train.enable()  # reads and fills $GLOWPLUG_CACHE_DIR, which the workers of a node share
    keras.utils.set_random_seed(seed)
    model = keras.Sequential([keras.Input((16,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    x = np.random.default_rng(seed).normal(size=(32, 16)).astype("float32")
    history = model.fit(x, x.sum(1, keepdims=True), batch_size=32, epochs=1, verbose=0)
    counts = train.counts()
    return {
        "loss": float(history.history["loss"][0]),
        "seconds": time.perf_counter() - began,
        "restored": counts["restored"],
        "traced": counts["traced"],
        "pid": os.getpid(),
    }
