"""Write a SavedModel with a few megabytes of weights."""

import sys

import tensorflow as tf

module = tf.Module()
module.kernels = [tf.Variable(tf.ones([512, 512])) for _ in range(6)]


@tf.function(input_signature=[tf.TensorSpec([None, 512], tf.float32)])
def serve(x):
    for kernel in module.kernels:
        x = tf.nn.relu(tf.matmul(x, kernel))
    return x


tf.saved_model.save(module, sys.argv[1] + "/model", signatures=serve.get_concrete_function())
