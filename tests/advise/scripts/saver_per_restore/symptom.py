"""A new Saver, with new operations for every variable, for each restore."""

import sys

import tensorflow as tf

tf.compat.v1.disable_eager_execution()
for index in range(100):
    tf.compat.v1.get_variable(f"weights_{index}", [8, 8])
with tf.compat.v1.Session() as session:
    session.run(tf.compat.v1.global_variables_initializer())
    path = tf.compat.v1.train.Saver().save(session, sys.argv[1] + "/weights")
    for _ in range(25):
        tf.compat.v1.train.Saver().restore(session, path)
