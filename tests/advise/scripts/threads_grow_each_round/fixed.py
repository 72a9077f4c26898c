"""One session for all rounds, closed at the end."""

import tensorflow as tf

tf.compat.v1.disable_eager_execution()
total = tf.reduce_sum(tf.ones([4]))
config = tf.compat.v1.ConfigProto(use_per_session_threads=True, inter_op_parallelism_threads=4)
with tf.compat.v1.Session(config=config) as session:
    for _ in range(15):
        session.run(total)
