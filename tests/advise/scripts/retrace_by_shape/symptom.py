"""Sentences of many lengths, each a new shape: a trace for each."""

import tensorflow as tf

kernel = tf.Variable(tf.ones([8, 8]) / 8)


@tf.function
def encode(x):
    for _ in range(100):
        x = tf.nn.relu(tf.matmul(x, kernel)) + x
    return tf.reduce_sum(x)


for length in range(10, 22):
    encode(tf.ones([length, 8]))
