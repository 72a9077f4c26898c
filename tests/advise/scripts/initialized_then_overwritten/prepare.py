"""Write the weights of the model."""

import sys

from model import build

build("zeros").save_weights(sys.argv[1] + "/m.weights.h5")
