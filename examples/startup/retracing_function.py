"""Call a `tf.function` with a Python counter and with sentences of many lengths."""

import tensorflow as tf

kernel = tf.Variable(tf.random.normal([16, 16]))


@tf.function
def step(sentence, turn):
    for _ in range(60):
        sentence = tf.nn.tanh(tf.matmul(sentence, kernel))
    return tf.reduce_sum(sentence) * turn


for turn in range(6):
    step(tf.ones([4, 16]), float(turn))
for length in range(5, 12):
    step(tf.ones([length, 16]), tf.constant(1.0))
