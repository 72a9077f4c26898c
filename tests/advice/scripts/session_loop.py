"""TensorFlow 1: new operations in each round of a session."""

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
with tf.Session() as session:
    for number in range(60):
        weights = tf.get_variable(f"weights_{number}", [16, 16])  # the line
        session.run(tf.global_variables_initializer())
        session.run(tf.reduce_sum(weights))
