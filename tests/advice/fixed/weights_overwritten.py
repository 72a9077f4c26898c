"""No random weights where a file follows: weights_overwritten.py FOLDER"""

import sys
from pathlib import Path

import keras

from glowplug import train


def build():
    wide = {"kernel_initializer": "orthogonal"}
    return keras.Sequential([keras.Input([1500]), keras.layers.Dense(1500, **wide), keras.layers.Dense(1500, **wide)])


weights = Path(sys.argv[1]) / "model.weights.h5"
with train.skip_init():
    model = build()
    train.load_weights(model, weights)
print(float(model(keras.ops.ones([1, 1500]))[0, 0]))
