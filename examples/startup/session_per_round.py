"""Open a session, make variables and initialise them in each of 60 rounds."""

import tensorflow as tf

tf.compat.v1.disable_eager_execution()
for turn in range(60):
    weights = tf.compat.v1.get_variable(f"weights_{turn}", [64, 64])
    with tf.compat.v1.Session() as session:
        session.run(tf.compat.v1.global_variables_initializer())
        session.run(tf.reduce_sum(weights))
