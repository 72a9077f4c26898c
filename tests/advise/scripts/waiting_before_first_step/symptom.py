"""Ask a subprocess and wait a while before the model is built."""

import subprocess
import sys
import time

import keras
import numpy as np

subprocess.run([sys.executable, "-c", "import time; time.sleep(1.5)"], check=True)
time.sleep(0.5)
model = keras.Sequential([keras.Input([8]), keras.layers.Dense(8)])
model.predict(np.ones([1, 8], "float32"), verbose=0)
