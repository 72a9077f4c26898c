"""A graph, a session, a few runs."""

import numpy as np
import tensorflow as tf

tf.compat.v1.disable_eager_execution()
x = tf.compat.v1.placeholder(tf.float32, [None, 8])
y = tf.matmul(x, tf.compat.v1.get_variable("kernel", [8, 1]))
with tf.compat.v1.Session() as session:
    session.run(tf.compat.v1.global_variables_initializer())
    for _ in range(10):
        session.run(y, {x: np.ones([4, 8])})
