"""Loops that train again and again, stock and with `reinitialize`: train_loops.py [ROUNDS]

Each side runs in a process of its own. Keras: an 11-layer model, built, compiled and fitted in each round, against
one model that starts anew. TensorFlow 1: new variables and `global_variables_initializer()` in each round, against
one graph and `reinitialize_session`. Seconds and resident memory of every round are kept.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import machine


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def measure(rounds: int, run: Callable[[], None]) -> dict[str, Any]:
    seconds, memory = [], []
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
        memory.append(resident_bytes())
    return {"seconds": seconds, "resident_bytes": memory}


def keras_loop(*, stock: bool, rounds: int) -> dict[str, Any]:
    import keras
    import numpy as np

    from glowplug import train

    x, y = np.ones((64, 32), "float32"), np.ones((64, 1), "float32")

    def build() -> Any:
        layers = [keras.layers.Dense(32, activation="relu") for _ in range(10)]
        model = keras.Sequential([keras.Input((32,)), *layers, keras.layers.Dense(1)])
        model.compile("adam", "mse")
        return model

    if stock:
        return measure(rounds, lambda: build().fit(x, y, verbose=0))
    model = build()

    def again() -> None:
        train.reinitialize(model)
        model.fit(x, y, verbose=0)

    return measure(rounds, again)


def session_loop(*, stock: bool, rounds: int) -> dict[str, Any]:
    import tensorflow as tf

    from glowplug import train

    v1 = tf.compat.v1
    with tf.Graph().as_default() as graph, v1.Session() as session:

        def variables() -> None:
            for _ in range(4):
                v1.Variable(v1.random_normal((16, 16)))

        def fresh() -> None:
            variables()
            session.run(v1.global_variables_initializer())

        if not stock:
            variables()
        result = measure(rounds, fresh if stock else lambda: train.reinitialize_session(session))
        return {**result, "operations": len(graph.get_operations())}


LOOPS = {"keras": (keras_loop, 60), "session": (session_loop, 200)}


def main() -> None:
    if len(sys.argv) == 4:
        loop = LOOPS[sys.argv[1]][0]
        print(json.dumps(loop(stock=sys.argv[2] == "stock", rounds=int(sys.argv[3]))))
        return
    machine.prepare()
    results: dict[str, Any] = {}
    for name, (_, rounds) in LOOPS.items():
        wanted = int(sys.argv[1]) if len(sys.argv) > 1 else rounds
        for side in ("stock", "glowplug"):
            result = json.loads(machine.run_quietly([__file__, name, side, str(wanted)]))
            results.setdefault(name, {})[side] = result
            seconds, memory = result["seconds"], result["resident_bytes"]
            growth = (memory[-1] - memory[3]) / (len(memory) - 4) / 1e6
            print(
                f"{name} {side}: round 1 {seconds[1]:.3f} s, last {seconds[-1]:.3f} s, slowest after round 3 "
                f"{max(seconds[4:]):.3f} s, {growth:.3f} MB more each round"
            )
    machine.write_result("train_loops", {"machine": machine.describe(), "loops": results}, partial=len(sys.argv) > 1)


if __name__ == "__main__":
    main()
