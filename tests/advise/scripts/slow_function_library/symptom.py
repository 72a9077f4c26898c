"""Load a SavedModel that holds the call functions of every block."""

import sys

import tensorflow as tf

model = tf.saved_model.load(sys.argv[1] + "/every_block")
model.signatures["serving_default"](tf.ones([1, 8]))
