"""TensorFlow Decision Forests, trained on a handful of made-up rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_decision_forests as tfdf

OPERATIONS = ("tensorflow_decision_forests",)
KINDS = ("RandomForestModel", "GradientBoostedTreesModel", "CartModel")


def _forest(kind: str, directory: Path) -> None:
    random = np.random.default_rng(3)
    rows = 200
    data = {
        "size": random.normal(size=rows).astype("float32"),
        "weight": random.normal(size=rows).astype("float32"),
        "colour": random.choice(["red", "green", "blue"], rows),
    }
    label = (data["size"] + (data["colour"] == "red") > 0.3).astype("int64")
    options: dict[str, Any] = {} if kind == "CartModel" else {"num_trees": 10}
    model = getattr(tfdf.keras, kind)(**options, verbose=0)
    model.fit(tf.data.Dataset.from_tensor_slices((data, label)).batch(50), verbose=0)
    model.save(str(directory))


MODELS: dict[str, Callable[[Path], Any]] = {f"TF-DF:{kind}": partial(_forest, kind) for kind in KINDS}
OP_LIBRARIES = dict.fromkeys(MODELS, OPERATIONS)
