"""The reference models, with random weights and a fixed seed, built once into bench/.cache: models.py [NAME ...]

A small dense network, ResNet50 and an encoder of BERT-base's size.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import machine

CACHE = machine.CACHE / "models"

# name -> (shape, dtype) of the input that the benchmarks feed
INPUTS = {
    "dense": ((1, 784), "float32"),
    "resnet50": ((1, 224, 224, 3), "float32"),
    "encoder": ((1, 128), "int32"),
}


def saved_model(name: str) -> Path:
    """Return the SavedModel of a reference model, built in a process of its own where it is missing."""
    directory = CACHE / f"{name}_saved_model"
    if not directory.exists():
        print(f"building {name} ...", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, __file__, name], check=True)
    return directory


def dense():
    import keras
    from keras import layers

    return keras.Sequential([keras.Input((784,)), layers.Dense(1024, activation="relu"), layers.Dense(10)])


def resnet50():
    import keras

    return keras.applications.ResNet50(weights=None)


def encoder(vocabulary=30522, width=768, heads=12, depth=12, length=128):
    import keras
    from keras import layers

    ids = keras.Input((length,), dtype="int32")
    x = layers.Embedding(vocabulary, width)(ids) + layers.Embedding(length, width)(keras.ops.arange(length))
    for _ in range(depth):
        x = layers.LayerNormalization()(x + layers.MultiHeadAttention(heads, width // heads)(x, x))
        wide = layers.Dense(4 * width, activation="gelu")(x)
        x = layers.LayerNormalization()(x + layers.Dense(width)(wide))
    return keras.Model(ids, layers.Dense(2)(x[:, 0]))


def unsettle(model) -> None:
    """Give batch normalisations values like a trained model's: fresh ones are folded away entirely."""
    import numpy as np
    from keras import layers

    random = np.random.default_rng(1)
    for layer in model.layers:
        if isinstance(layer, layers.BatchNormalization):
            n = layer.gamma.shape[0]
            scale, variance = random.uniform(0.8, 1.2, n), random.uniform(0.8, 1.2, n)
            layer.set_weights([scale, random.normal(0, 0.1, n), random.normal(0, 0.1, n), variance])


BUILDERS = {"dense": dense, "resnet50": resnet50, "encoder": encoder}


def main() -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import keras

    CACHE.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[1:] or BUILDERS:
        keras.utils.set_random_seed(1)
        model = BUILDERS[name]()
        unsettle(model)
        unfinished = CACHE / f".{name}_{os.getpid()}"
        model.export(str(unfinished), verbose=False)
        unfinished.rename(CACHE / f"{name}_saved_model")


if __name__ == "__main__":
    main()
