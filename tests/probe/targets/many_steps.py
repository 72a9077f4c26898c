"""A small function called 500 times in a loop."""

import tensorflow as tf


@tf.function
def step(x):
    return x + 1.0


value = tf.zeros([4])
for _ in range(500):
    value = step(value)
print(float(value[0]))
