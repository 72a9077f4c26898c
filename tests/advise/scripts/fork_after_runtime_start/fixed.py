"""Fork the worker first."""

import os

import tensorflow as tf

child = os.fork()
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
tf.reduce_sum(tf.ones([4]))
