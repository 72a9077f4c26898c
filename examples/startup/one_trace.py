"""Call the same function with tensors that fit one signature."""

import tensorflow as tf

kernel = tf.Variable(tf.random.normal([16, 16]))


@tf.function(input_signature=[tf.TensorSpec([None, 16], tf.float32), tf.TensorSpec([], tf.float32)])
def step(sentence, turn):
    for _ in range(60):
        sentence = tf.nn.tanh(tf.matmul(sentence, kernel))
    return tf.reduce_sum(sentence) * turn


for turn in range(6):
    step(tf.ones([4, 16]), tf.constant(float(turn)))
for length in range(5, 12):
    step(tf.ones([length, 16]), tf.constant(1.0))
