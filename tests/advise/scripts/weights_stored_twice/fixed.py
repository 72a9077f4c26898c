"""Load the same network from a SavedModel that holds each variable once."""

import sys

import tensorflow as tf

model = tf.saved_model.load(sys.argv[1] + "/once")
model.signatures["serving_default"](tf.ones([1, 2048]))
