"""Start from zeros, which cost next to nothing, then load the values."""

import sys

import numpy as np
from model import build

network = build("zeros")
network.load_weights(sys.argv[1] + "/m.weights.h5")
network.predict(np.ones([1, 1400], "float32"), verbose=0)
