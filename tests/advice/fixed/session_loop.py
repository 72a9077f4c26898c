"""TensorFlow 1: the graph is whole before the rounds begin."""

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
weights = tf.get_variable("weights", [16, 16])
fresh, total = tf.global_variables_initializer(), tf.reduce_sum(weights)
with tf.Session() as session:
    for _ in range(60):
        session.run(fresh)
        session.run(total)
