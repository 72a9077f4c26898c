"""The learning rate is a Python number, so every new value is a new graph."""

import tensorflow as tf

kernel = tf.Variable(tf.ones([8, 8]) / 8)


@tf.function
def step(x, rate):
    for _ in range(100):
        x = tf.nn.relu(tf.matmul(x, kernel)) * rate + x
    return tf.reduce_sum(x)


for turn in range(12):
    step(tf.ones([4, 8]), 0.1 / (turn + 1))
