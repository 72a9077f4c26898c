"""The program is over soon after TensorFlow is there."""

import tensorflow as tf

print(tf.reduce_sum(tf.ones([2, 2])).numpy())
