"""Import TensorFlow after its files were read in order."""

from tensorflow_files import read_ahead

read_ahead()

import tensorflow as tf  # noqa: E402

tf.reduce_sum(tf.ones([4]))
