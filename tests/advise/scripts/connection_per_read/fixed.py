"""Read weights from a remote store in one request."""

import urllib.request

import numpy as np
import tensorflow as tf
from storage import storage

with storage() as url, urllib.request.urlopen(url) as response:
    data = response.read()
weights = tf.Variable(np.frombuffer(data, "float32"))
tf.reduce_sum(weights)
