"""Draw orthogonal matrices, then load other values over them."""

import sys

import numpy as np
from model import build

network = build("orthogonal")
network.load_weights(sys.argv[1] + "/m.weights.h5")
network.predict(np.ones([1, 1400], "float32"), verbose=0)
