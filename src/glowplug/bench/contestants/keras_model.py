"""Keras: a file through `load_model` and `predict_on_batch`, a SavedModel through `TFSMLayer`."""

from __future__ import annotations

import os
from typing import Any

SHARED = True


def open_model(job: dict[str, Any]) -> Any:
    """Return the call."""
    import keras
    import numpy as np
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(job["threads"])
    tf.config.threading.set_inter_op_parallelism_threads(job["threads"])
    if os.path.isdir(job["model"]):
        layer = keras.layers.TFSMLayer(job["model"], call_endpoint=job["signature"])

        def predict(value: Any) -> Any:
            return layer(tf.constant(value) if not isinstance(value, (dict, list)) else value)

        names: list[str] = []
    else:
        model = keras.models.load_model(job["model"], compile=False)
        predict = model.predict_on_batch
        names = [tensor.name for tensor in model.inputs] if getattr(model, "inputs", None) else []

    def call(inputs: dict[str, Any]) -> dict[str, Any]:
        values = list(inputs.values())
        if len(values) == 1:
            answer = predict(values[0])
        else:
            answer = predict(dict(inputs) if set(inputs) == set(names) else values)
        if not isinstance(answer, dict):
            answers = answer if isinstance(answer, (list, tuple)) else [answer]
            answer = {str(place): value for place, value in enumerate(answers)}
        return {name: np.asarray(value) for name, value in answer.items()}

    return call
