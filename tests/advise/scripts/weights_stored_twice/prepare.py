"""Write one network as Keras exports it, and as a module that holds each variable under one name."""

import sys

import keras
import tensorflow as tf

network = keras.Sequential([keras.Input([2048]), *(keras.layers.Dense(2048) for _ in range(12))])
network.export(sys.argv[1] + "/exported", verbose=False)

module = tf.Module()
module.values = [variable.value for variable in network.variables]
serve = tf.function(network, input_signature=[tf.TensorSpec([None, 2048], tf.float32)])
tf.saved_model.save(module, sys.argv[1] + "/once", signatures=serve.get_concrete_function())
