"""Every round adds operations to the graph of an open session, which then has to be extended."""

import numpy as np
import tensorflow as tf

tf.compat.v1.disable_eager_execution()
weights = tf.compat.v1.get_variable("weights", [8, 8])
with tf.compat.v1.Session() as session:
    session.run(tf.compat.v1.global_variables_initializer())
    for turn in range(100):
        x = tf.constant(np.full([4, 8], turn, "float32"))
        for _ in range(10):
            x = tf.nn.relu(tf.matmul(x, weights))
        session.run(x)
