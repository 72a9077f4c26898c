"""One signature that fits every length: one trace."""

import tensorflow as tf

weights = [tf.Variable(tf.random.normal([32, 32])) for _ in range(30)]


@tf.function(input_signature=[tf.TensorSpec([None, 32], tf.float32)])
def step(x):
    for weight in weights:
        x = tf.nn.gelu(tf.matmul(x, weight))
    return tf.reduce_sum(x)


for length in range(1, 13):
    step(tf.ones([length, 32]))
