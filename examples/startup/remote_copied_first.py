"""Fetch a network from remote storage in one request, then load it: remote_copied_first.py FOLDER"""

import shutil
import sys
import tempfile
import urllib.request
from pathlib import Path

import keras
import numpy as np
from remote_storage import serve

with serve(sys.argv[1] + "/network.keras") as url, tempfile.TemporaryDirectory() as folder:
    local = Path(folder) / "network.keras"
    with urllib.request.urlopen(url) as response, local.open("wb") as file:
        shutil.copyfileobj(response, file, 16 << 20)
    model = keras.models.load_model(local, compile=False)
model.predict(np.ones([1, 224, 224, 3], "float32"), verbose=0)
