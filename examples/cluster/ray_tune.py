"""Ray Tune without a new graph for each trial: ray_tune.py [--address HOST:PORT] [--rounds 6]

One actor keeps one model; every trial is `train.reinitialize(model, seed)`: new weights, the same graph, so that the
tenth trial costs what the second did. `reuse_actors` is Tune's own way to keep the actor.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from typing import Any

import ray
from ray import tune


class Trial(tune.Trainable):
    """One trial after the other in one process."""

    def setup(self, config: dict) -> None:
        import keras
        import numpy as np

        self._model = keras.Sequential(
            [keras.Input((16,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(1)]
        )
        self._traces = 0
        self._model.compile(keras.optimizers.SGD(), self._loss)
        self._x = np.random.default_rng(0).normal(size=(64, 16)).astype("float32")
        self._begin(config)

    def reset_config(self, new_config: dict) -> bool:
        self._begin(new_config)
        return True

    def _begin(self, config: dict) -> None:
        from glowplug import train

        train.reinitialize(self._model, seed=config["seed"])
        self._model.optimizer.learning_rate.assign(config["rate"])

    def _loss(self, wanted: Any, found: Any) -> Any:
        self._traces += 1  # Python runs while a graph is made, and never again
        return (wanted - found) ** 2

    def step(self) -> dict:
        found = self._model.fit(self._x, self._x.sum(1, keepdims=True), epochs=1, verbose=0)
        return {"loss": float(found.history["loss"][0]), "pid": os.getpid(), "traces": self._traces}

    def save_checkpoint(self, checkpoint_dir: str) -> None:
        self._model.save_weights(f"{checkpoint_dir}/model.weights.h5")

    def load_checkpoint(self, checkpoint_dir: str) -> None:
        self._model.load_weights(f"{checkpoint_dir}/model.weights.h5")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--address", default="auto")
    parser.add_argument("--rounds", type=int, default=6)
    args = parser.parse_args()
    ray.init(address=args.address, log_to_driver=False)
    with tempfile.TemporaryDirectory() as folder:
        tuner = tune.Tuner(
            Trial,
            param_space={"seed": tune.randint(0, 1000), "rate": tune.loguniform(1e-4, 1e-1)},
            tune_config=tune.TuneConfig(
                num_samples=args.rounds, reuse_actors=True, max_concurrent_trials=1, metric="loss", mode="min"
            ),
            run_config=tune.RunConfig(storage_path=folder, stop={"training_iteration": 2}, verbose=0),
        )
        results = tuner.fit()
        print(
            json.dumps(
                {
                    "trials": len(results),
                    "errors": results.num_errors,
                    "best": results.get_best_result().metrics["loss"],
                    "processes": len({one.metrics["pid"] for one in results}),
                    "traces": max(one.metrics["traces"] for one in results),
                }
            )
        )


if __name__ == "__main__":
    main()
