"""Compile the same function with the persistent cache that `environment.json` sets up."""

import tensorflow as tf

weights = [tf.Variable(tf.ones([32, 32]) / 32) for _ in range(20)]


@tf.function(jit_compile=True)
def step(x):
    for turn in range(80):
        x = tf.tanh(tf.matmul(x, weights[turn % 20]) + float(turn))
    return x


for _ in range(3):
    step(tf.ones([4, 32]))
