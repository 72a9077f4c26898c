"""Fresh weights in each round, from one initialiser."""

import tensorflow as tf

tf.compat.v1.disable_eager_execution()
for index in range(100):
    tf.compat.v1.get_variable(f"weights_{index}", [8, 8])
with tf.compat.v1.Session() as session:
    initialise = tf.compat.v1.global_variables_initializer()
    for _ in range(35):
        session.run(initialise)
