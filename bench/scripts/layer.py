"""The start that `glowplug run` is measured with: import both, call a layer once, print its result."""

import tensorflow as tf  # noqa: I001 - in the order in which people write them
import keras

print(keras.layers.Dense(2, kernel_initializer="ones")(tf.ones((1, 3))).numpy().tolist())
import os
import time

print(time.clock_gettime_ns(time.CLOCK_MONOTONIC), flush=True)
os._exit(0)  # leaving takes another half second, and is not what is measured
