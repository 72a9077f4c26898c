"""Write one network in the forms that people load: make_models.py FOLDER

MobileNetV2 with random weights as `.keras`, as legacy `.h5` and as a SavedModel.
"""

import sys
from pathlib import Path

import keras

folder = Path(sys.argv[1])
network = keras.applications.MobileNetV2(weights=None)
network.save(folder / "network.keras")
network.save(folder / "network.h5")
network.export(folder / "network", verbose=False)
