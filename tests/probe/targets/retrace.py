"""One tf.function called with other shapes, dtypes, Python values and objects."""

import tensorflow as tf


@tf.function
def by_shape(x):
    return tf.reduce_sum(x)


@tf.function
def by_value(x, n):
    return x * n


@tf.function
def by_structure(x):
    return tf.nest.map_structure(tf.reduce_sum, x)


class Counter(tf.Module):
    def __init__(self):
        self.count = None

    @tf.function
    def __call__(self, x):
        if self.count is None:
            self.count = tf.Variable(tf.zeros([4]))
        return self.count + x


for size in (1, 2, 3):
    by_shape(tf.zeros([size]))
by_shape(tf.zeros([3], tf.int32))
for number in (1, 2, 3):
    by_value(tf.zeros([2]), number)
by_structure([tf.zeros([2])])
by_structure([tf.zeros([2]), tf.zeros([2])])
Counter()(tf.zeros([4]))
print("done")
