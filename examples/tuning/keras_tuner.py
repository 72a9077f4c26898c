"""Keras Tuner without growth: one model for each shape, fresh weights for each trial.

    python examples/tuning/keras_tuner.py [--rebuild] [--trials 12]

`--rebuild` builds and compiles a model for every trial, as the usual example does. Prints one line for each trial, with
its time and the memory of the process, and the best values at the end.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

# The script has the name of the package that it imports.
sys.path = [one for one in sys.path if Path(one or ".").resolve() != Path(__file__).resolve().parent]

import keras
import keras_tuner
import numpy as np

from glowplug import train


def make_model(width: int) -> keras.Model:
    layers = [keras.layers.Dense(width, activation="relu") for _ in range(8)]
    model = keras.Sequential([keras.Input((20,)), *layers, keras.layers.Dense(1)])
    model.compile(keras.optimizers.Adam(), "mse")
    return model


def shape(hp: keras_tuner.HyperParameters) -> dict[str, int]:
    """What needs a model of its own."""
    return {"width": hp.Choice("width", [16, 32])}


def adjust(model: keras.Model, hp: keras_tuner.HyperParameters) -> None:
    """What does not: a learning rate is a variable."""
    model.optimizer.learning_rate = hp.Float("learning_rate", 1e-4, 1e-2, sampling="log")


def rebuild(hp: keras_tuner.HyperParameters) -> keras.Model:
    """A model for every trial: what it traced and compiled stays in memory."""
    model = make_model(**shape(hp))
    adjust(model, hp)
    return model


class Report(keras.callbacks.Callback):
    """Prints what each trial took."""

    def on_train_begin(self, logs=None):
        self.began = time.monotonic()

    def on_train_end(self, logs=None):
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        resident = int(status.partition("VmRSS:")[2].split()[0]) // 1024
        print(f"trial: {time.monotonic() - self.began:.2f} s, {resident} MB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rebuild", action="store_true")
    parser.add_argument("--trials", type=int, default=12)
    arguments = parser.parse_args()
    random = np.random.default_rng(1)
    x = random.normal(size=(512, 20)).astype("float32")
    y = x[:, :1] * x[:, 1:2]
    with tempfile.TemporaryDirectory() as folder:
        tuner = keras_tuner.RandomSearch(
            rebuild if arguments.rebuild else train.keras_tuner_build(make_model, shape, adjust),
            objective="val_loss",
            max_trials=arguments.trials,
            seed=1,
            directory=folder,
        )
        tuner.search(x, y, validation_split=0.25, epochs=2, verbose=0, callbacks=[Report()])
        print(f"best: {tuner.get_best_hyperparameters()[0].values}")


if __name__ == "__main__":
    main()
