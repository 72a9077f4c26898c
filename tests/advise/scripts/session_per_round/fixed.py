"""A request handler that keeps its session."""

import numpy as np
import tensorflow as tf

tf.compat.v1.disable_eager_execution()
fed = x = tf.compat.v1.placeholder(tf.float32, [1, 8])
for turn in range(300):
    x = tf.nn.relu(tf.matmul(x, tf.constant(np.full([8, 8], 0.1 + turn / 1000, "float32"))))
session = tf.compat.v1.Session()
for _ in range(25):
    session.run(x, {fed: np.ones([1, 8])})
