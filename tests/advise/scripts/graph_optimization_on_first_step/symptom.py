"""A graph of thousands of small operations: the first call spends its time in Grappler."""

import tensorflow as tf

weights = [tf.Variable(tf.ones([8, 8]) / 8) for _ in range(20)]


@tf.function
def step(x):
    for turn in range(1500):
        x = tf.tanh(tf.matmul(x, weights[turn % 20]) + float(turn))
    return x


for _ in range(3):
    step(tf.ones([1, 8]))
