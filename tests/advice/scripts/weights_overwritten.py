"""Draws random weights and then loads a file over them: weights_overwritten.py FOLDER"""

import sys
from pathlib import Path

import keras


def build():
    wide = {"kernel_initializer": "orthogonal"}
    return keras.Sequential([keras.Input([1500]), keras.layers.Dense(1500, **wide), keras.layers.Dense(1500, **wide)])


weights = Path(sys.argv[1]) / "model.weights.h5"
if not weights.exists():
    build().save_weights(weights)
    sys.exit()
model = build()
model.load_weights(weights)
print(float(model(keras.ops.ones([1, 1500]))[0, 0]))
