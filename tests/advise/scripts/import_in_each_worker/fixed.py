"""One process for all tasks."""

import subprocess
import sys

TASK = "import tensorflow as tf\nfor size in (2, 3, 4): print(float(tf.reduce_sum(tf.ones([size]))))"
subprocess.run([sys.executable, "-c", TASK], check=True)
