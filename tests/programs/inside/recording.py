"""What a program of the harness calls in place of `fit` and `train_on_batch`: the same, and the results are kept.

Nothing of Keras is replaced. A callback that is added to each `fit` keeps the logs of every batch and epoch; at the end
the weights of the program's models are digested. Everything is written as JSON to the file that `PROGRAM_RECORD` names,
with what Glowplug said about its steps, if it is there.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import logging
import os
from pathlib import Path
from typing import Any

MAX_EPOCHS = 2

record: dict[str, Any] = {"logs": [], "weights": {}, "notes": []}


class _Notes(logging.Handler):
    def emit(self, message: logging.LogRecord) -> None:
        record["notes"].append(message.getMessage())


def begin(*, determinism: bool) -> None:
    """Seed everything, make operations deterministic if asked for, and listen to what Glowplug says."""
    logger = logging.getLogger("glowplug.train")
    logger.setLevel(logging.INFO)
    logger.addHandler(_Notes())
    atexit.register(_write)
    import keras
    import tensorflow as tf

    keras.utils.set_random_seed(1)
    if determinism:
        tf.config.experimental.enable_op_determinism()


def fit(model: Any, *args: Any, **options: Any) -> Any:
    """`model.fit`, for few epochs. What is no Keras model is fitted as it is."""
    import keras

    if not isinstance(model, keras.Model):
        return model.fit(*args, **options)
    options["callbacks"] = [*(options.get("callbacks") or []), _callback()]
    if "epochs" in options:
        options["epochs"] = min(options["epochs"], options.get("initial_epoch", 0) + MAX_EPOCHS)
    return model.fit(*args, **options)


def train_on_batch(model: Any, *args: Any, **options: Any) -> Any:
    """`model.train_on_batch`, its result kept."""
    result = model.train_on_batch(*args, **options)
    record["logs"].append(["train_on_batch", _exact(result)])
    return result


def keep(*values: Any) -> None:
    """Keep values of a program that trains in a loop of its own."""
    record["logs"].append(["kept", [_exact(value) for value in values]])


def nothing(*args: Any, **options: Any) -> None:
    """Stand in for what only draws a picture."""


def finish(space: dict[str, Any]) -> None:
    """Digest the weights of every model and layer among a program's globals."""
    import keras

    for name, value in sorted(space.items()):
        if isinstance(value, keras.Layer):
            whole = hashlib.sha256()
            for weight in value.weights:
                whole.update(weight.numpy().tobytes())
            record["weights"][name] = whole.hexdigest()
    record["finished"] = True


def _callback() -> Any:
    import keras

    class Recorder(keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            record["logs"].append([batch, _exact(logs)])

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            record["logs"].append([f"epoch {epoch}", _exact(logs)])

    return Recorder()


def _exact(value: Any) -> Any:
    """Return a value as text that is equal only for equal bits."""
    import numpy as np

    if isinstance(value, dict):
        return {str(key): _exact(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_exact(item) for item in value]
    if isinstance(value, (str, int, type(None))):
        return value
    array = np.asarray(value)
    return float(array).hex() if array.ndim == 0 else hashlib.sha256(array.tobytes()).hexdigest()


def _write() -> None:
    Path(os.environ["PROGRAM_RECORD"]).write_text(json.dumps(record), encoding="utf-8")
