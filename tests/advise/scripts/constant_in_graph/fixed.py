"""An embedding table of 200 MB is fed once to the variable that holds it."""

import numpy as np
import tensorflow as tf

tf.compat.v1.disable_eager_execution()
values = np.ones([50_000, 1024], "float32")
fed = tf.compat.v1.placeholder(tf.float32, values.shape)
table = tf.compat.v1.get_variable("table", initializer=fed)
row = tf.gather(table, [7])
with tf.compat.v1.Session() as session:
    session.run(table.initializer, {fed: values})
    session.run(row)
