"""An embedding table of 200 MB is the initial value of a variable, and so a constant of the graph."""

import numpy as np
import tensorflow as tf

tf.compat.v1.disable_eager_execution()
values = np.ones([50_000, 1024], "float32")
table = tf.compat.v1.get_variable("table", initializer=tf.constant(values))
row = tf.gather(table, [7])
with tf.compat.v1.Session() as session:
    session.run(tf.compat.v1.global_variables_initializer())
    session.run(row)
