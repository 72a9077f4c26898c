"""Fork a worker after TensorFlow has computed something."""

import os

import tensorflow as tf

tf.reduce_sum(tf.ones([4]))
child = os.fork()
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
