"""Write a SavedModel with 64 MB of weights."""

import sys

import tensorflow as tf

module = tf.Module()
module.kernel = tf.Variable(tf.ones([4096, 4096]))


@tf.function(input_signature=[tf.TensorSpec([None, 4096], tf.float32)])
def serve(x):
    return tf.matmul(x, module.kernel)


tf.saved_model.save(module, sys.argv[1] + "/model", signatures=serve.get_concrete_function())
