"""Loads a bundle, calls it once, says so, and waits until its standard input ends: hold.py BUNDLE SHAPE DTYPE"""

import sys

import numpy as np

import glowplug

path, shape, dtype = sys.argv[1:]
model = glowplug.load(path)
model(np.ones([int(size) for size in shape.split(",")], dtype))
print("ready", flush=True)
sys.stdin.read()
