"""One Saver for every restore."""

import sys

import tensorflow as tf

tf.compat.v1.disable_eager_execution()
for index in range(100):
    tf.compat.v1.get_variable(f"weights_{index}", [8, 8])
with tf.compat.v1.Session() as session:
    session.run(tf.compat.v1.global_variables_initializer())
    saver = tf.compat.v1.train.Saver()
    path = saver.save(session, sys.argv[1] + "/weights")
    for _ in range(25):
        saver.restore(session, path)
