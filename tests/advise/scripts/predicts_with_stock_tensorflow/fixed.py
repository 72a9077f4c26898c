"""The same from a bundle."""

import sys

import numpy as np

import glowplug

model = glowplug.load(sys.argv[1] + "/model.glow")
print(model(np.ones([4, 8], "float32")).shape)
