"""The same application of Ray Serve's as people write it today: each replica imports TensorFlow and loads a SavedModel.

Used by cluster_ready.py, on the nodes of a cluster.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any


class StockReplica:
    """Ready when one call was answered, as ours is."""

    def __init__(self, folder: str, url: str, shape: list[int], dtype: str) -> None:
        began = time.time()
        local = _copied(folder, url)
        import numpy as np
        import tensorflow as tf

        self._model = tf.saved_model.load(local)
        self._call = self._model.signatures["serving_default"]
        (self._name,) = self._call.structured_input_signature[1]
        self._tf = tf
        self._call(**{self._name: tf.constant(np.zeros(shape, dtype))})
        self._ready_s = time.time() - began

    async def __call__(self, request: Any) -> dict[str, Any]:
        rows = (await request.json())["instances"]
        found = self._call(**{self._name: self._tf.constant(rows)})
        return {"predictions": next(iter(found.values())).numpy().tolist()}

    def about(self) -> dict[str, Any]:
        return {"pid": os.getpid(), "ready_s": self._ready_s}


def _copied(folder: str, url: str) -> str:
    """Copy the model to this node, as start scripts do: each replica into a folder of its own."""
    import obstore

    bucket, _, prefix = url.removeprefix("s3://").partition("/")
    store = obstore.store.S3Store(bucket)
    target = Path(folder) / str(os.getpid())
    for batch in obstore.list(store, prefix):
        for one in batch:
            path = target / str(one["path"]).removeprefix(prefix).lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as stream:
                for piece in obstore.get(store, one["path"]).stream():
                    stream.write(piece)
    return str(target)
