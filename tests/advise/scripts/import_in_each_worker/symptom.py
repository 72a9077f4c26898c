"""A process for each task, each importing TensorFlow."""

import subprocess
import sys

TASK = "import tensorflow as tf; print(float(tf.reduce_sum(tf.ones([{size}]))))"
for size in (2, 3, 4):
    subprocess.run([sys.executable, "-c", TASK.format(size=size)], check=True)
