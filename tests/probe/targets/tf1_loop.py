"""Variables, an initialiser and a session made anew in every round: the default graph grows. ROUNDS"""

import sys

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()


def one_round(number):
    weights = tf.get_variable(f"w{number}", [64, 64], initializer=tf.random_normal_initializer())
    total = tf.reduce_sum(weights * 2.0)
    initialize = tf.global_variables_initializer()
    with tf.Session() as session:
        session.run(initialize)
        return session.run(total)


for number in range(int(sys.argv[1])):
    one_round(number)
print("done")
