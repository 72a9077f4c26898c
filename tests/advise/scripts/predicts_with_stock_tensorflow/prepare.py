"""Makes a model, as a Keras file and as a bundle: prepare.py FOLDER"""

import sys

import keras

import glowplug

model = keras.Sequential([keras.Input([8]), keras.layers.Dense(16, activation="relu"), keras.layers.Dense(1)])
model.save(sys.argv[1] + "/model.keras")
glowplug.pack(model, sys.argv[1] + "/model.glow", engine="native")
