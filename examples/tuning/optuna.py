"""Optuna without growth: one model for each shape, fresh weights for each trial.

    python examples/tuning/optuna.py [--rebuild] [--trials 12]

`--rebuild` builds and compiles a model for every trial, as the usual example does. Prints one line for each trial, with
its time and the memory of the process, and the best values at the end.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

# The script has the name of the package that it imports.
sys.path = [one for one in sys.path if Path(one or ".").resolve() != Path(__file__).resolve().parent]

import keras
import numpy as np
import optuna

from glowplug import train


def make_model(width: int) -> keras.Model:
    layers = [keras.layers.Dense(width, activation="relu") for _ in range(8)]
    model = keras.Sequential([keras.Input((20,)), *layers, keras.layers.Dense(1)])
    model.compile(keras.optimizers.Adam(), "mse")
    return model


def data() -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(1).normal(size=(512, 20)).astype("float32")
    return x, x[:, :1] * x[:, 1:2]


def shape(trial: optuna.Trial) -> dict[str, int]:
    """What needs a model of its own."""
    return {"width": trial.suggest_categorical("width", [16, 32])}


def evaluate(model: keras.Model, trial: optuna.Trial) -> float:
    began = time.monotonic()
    # A learning rate is a variable: another value needs no other graph.
    model.optimizer.learning_rate = trial.suggest_float("learning_rate", 1e-4, 1e-2, log=True)
    fitted = model.fit(*data(), validation_split=0.25, epochs=2, verbose=0)
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    resident = int(status.partition("VmRSS:")[2].split()[0]) // 1024
    print(f"trial: {time.monotonic() - began:.2f} s, {resident} MB", flush=True)
    return fitted.history["val_loss"][-1]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rebuild", action="store_true")
    parser.add_argument("--trials", type=int, default=12)
    arguments = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=1))
    reusing = train.optuna_objective(make_model, shape, evaluate)
    rebuilding = lambda trial: evaluate(make_model(**shape(trial)), trial)  # noqa: E731 - as short as it is
    study.optimize(rebuilding if arguments.rebuild else reusing, n_trials=arguments.trials)
    print(f"best: {study.best_params}")


if __name__ == "__main__":
    main()
