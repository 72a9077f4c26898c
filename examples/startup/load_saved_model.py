"""Load the same network from a SavedModel and predict once: load_saved_model.py FOLDER"""

import sys

import tensorflow as tf

model = tf.saved_model.load(sys.argv[1] + "/network")
model.signatures["serving_default"](tf.ones([1, 224, 224, 3]))
