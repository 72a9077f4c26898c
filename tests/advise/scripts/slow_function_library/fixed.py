"""Load a SavedModel of the same network that holds only what is served."""

import sys

import tensorflow as tf

model = tf.saved_model.load(sys.argv[1] + "/served_only")
model.signatures["serving_default"](tf.ones([1, 8]))
