"""Load a network in a thread while the main thread prepares the data: load_in_background.py FOLDER"""

import sys
from concurrent.futures import ThreadPoolExecutor

import keras
import numpy as np


def prepare():
    """Make inputs: some seconds of work that does not need the model."""
    picture = np.zeros([224, 224, 3], "float32")
    for turn in range(60):
        picture += np.sin(np.linspace(0, turn, picture.size)).reshape(picture.shape).astype("float32")
    return picture[None]


with ThreadPoolExecutor(1) as pool:
    loading = pool.submit(keras.models.load_model, sys.argv[1] + "/network.keras", compile=False)
    inputs = prepare()
    model = loading.result()
model.predict(inputs, verbose=0)
