"""Initialisers on 100 million parameters, Keras' and Glowplug's in turn: train_initializers.py [MILLIONS]"""

from __future__ import annotations

import os
import statistics
import sys
import time
from typing import Any

import machine

NAMES = ("RandomUniform", "TruncatedNormal", "RandomNormal")
ROUNDS = 5


def seconds(initializer: Any, shape: tuple[int, int]) -> float:
    start = time.perf_counter()
    value = initializer(shape)
    elapsed = time.perf_counter() - start
    del value
    return elapsed


def main() -> None:
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import keras

    from glowplug import train

    shape = (10_000, int(sys.argv[1]) * 100 if len(sys.argv) > 1 else 10_000)
    results: dict[str, Any] = {}
    for name in NAMES:
        sides = {"keras": getattr(keras.initializers, name), "glowplug": getattr(train.initializers, name)}
        runs: dict[str, list[float]] = {side: [] for side in sides}
        for number in range(ROUNDS + 1):
            for side, kind in sides.items():
                elapsed = seconds(kind(seed=number), shape)
                if number:  # the first run of each pays for threads and kernels
                    runs[side].append(elapsed)
        medians = {side: statistics.median(each) for side, each in runs.items()}
        results[name] = {"seconds": runs, "median": medians, "ratio": medians["keras"] / medians["glowplug"]}
        print(
            f"{name}: keras {medians['keras']:.3f} s, glowplug {medians['glowplug']:.3f} s, "
            f"{results[name]['ratio']:.2f}x"
        )
    document = {"machine": machine.describe(), "shape": shape, "initializers": results}
    machine.write_result("train_initializers", document, partial=len(sys.argv) > 1)


if __name__ == "__main__":
    main()
