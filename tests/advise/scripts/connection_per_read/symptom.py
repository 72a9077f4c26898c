"""Read weights from a remote store in pieces of 64 KB, each over a connection of its own."""

import urllib.request

import numpy as np
import tensorflow as tf
from storage import DATA, storage

PIECE = 64 << 10

with storage() as url:
    pieces = []
    for first in range(0, len(DATA), PIECE):
        request = urllib.request.Request(url, headers={"Range": f"bytes={first}-{first + PIECE - 1}"})
        with urllib.request.urlopen(request) as response:
            pieces.append(response.read())
weights = tf.Variable(np.frombuffer(b"".join(pieces), "float32"))
tf.reduce_sum(weights)
