"""A test of somebody's project, for `-m pytest`."""

import tensorflow as tf  # the line


def test_sum():
    assert float(tf.reduce_sum(tf.ones([3]))) == 3.0
