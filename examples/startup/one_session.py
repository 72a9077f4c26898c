"""Initialise the same variable anew in each of 60 rounds of one session."""

import tensorflow as tf

tf.compat.v1.disable_eager_execution()
weights = tf.compat.v1.get_variable("weights", [64, 64])
total = tf.reduce_sum(weights)
initialise = tf.compat.v1.global_variables_initializer()
tf.compat.v1.get_default_graph().finalize()
with tf.compat.v1.Session() as session:
    for _ in range(60):
        session.run(initialise)
        session.run(total)
