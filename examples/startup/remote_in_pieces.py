"""Fetch a network from remote storage in pieces of 256 KB, then load it: remote_in_pieces.py FOLDER"""

import sys
import tempfile
import urllib.request
from pathlib import Path

import keras
import numpy as np
from remote_storage import serve

PIECE = 256 << 10

with serve(sys.argv[1] + "/network.keras") as url, tempfile.TemporaryDirectory() as folder:
    local = Path(folder) / "network.keras"
    with urllib.request.urlopen(urllib.request.Request(url, method="HEAD")) as response:
        size = int(response.headers["Content-Length"])
    with local.open("wb") as file:
        for first in range(0, size, PIECE):
            wanted = f"bytes={first}-{min(first + PIECE, size) - 1}"
            request = urllib.request.Request(url, headers={"Range": wanted})
            with urllib.request.urlopen(request) as response:
                file.write(response.read())
    model = keras.models.load_model(local, compile=False)
model.predict(np.ones([1, 224, 224, 3], "float32"), verbose=0)
