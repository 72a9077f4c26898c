"""Load a SavedModel that Keras exported."""

import sys

import tensorflow as tf

model = tf.saved_model.load(sys.argv[1] + "/exported")
model.signatures["serving_default"](tf.ones([1, 2048]))
