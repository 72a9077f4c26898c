"""Ask the subprocess first, let it work while the model is built, and ask for its answer at the end."""

import subprocess
import sys

asked = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1.5)"])

import keras  # noqa: E402
import numpy as np  # noqa: E402

model = keras.Sequential([keras.Input([8]), keras.layers.Dense(8)])
model.predict(np.ones([1, 8], "float32"), verbose=0)
asked.wait()
