"""What the snippets of the documentation take for granted: files in the working folder, and names.

Pages speak of one program all along: `build()` makes a small Keras model, `x` and `y` are its data, `path` is a file.
Names of Glowplug are not given: a page imports what it uses.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.docs.trial import run_trial, task

GRAPH_MODE = (  # these speak of a graph and a session that are there
    "constant_in_graph",
    "graph_grows_each_round",
    "initializer_built_each_round",
    "saver_per_restore",
    "session_per_round",
    "threads_grow_each_round",
)
PATHS = {
    "initialized_then_overwritten": "model.weights.h5",
    "load-weights": "weights.safetensors",
    "slow_function_library": "lean",
}


def make_files(folder: Path) -> None:
    """Fill an empty folder with what the snippets read. TensorFlow is imported here."""
    import keras
    import numpy as np
    import tensorflow as tf

    from glowplug import train
    from glowplug.convert.job import Job, Order
    from glowplug.core.disk.files import new_directory

    model = build()
    model.save(folder / "model.keras")
    model.save_weights(folder / "model.weights.h5")
    train.save_weights(model, folder / "weights.safetensors")
    model.export(folder / "saved_model_dir", verbose=False)
    for name, (module, signatures) in {"encoder": two_inputs(), "half": half_plus_two()}.items():
        tf.saved_model.save(module, folder / f"{name}_dir", signatures=signatures)
    digits = keras.Sequential([keras.Input((28, 28, 1)), keras.layers.Flatten(), keras.layers.Dense(10)])
    digits.export(folder / "digits_dir", verbose=False)
    for name, source in (("model", "saved_model"), ("encoder", "encoder"), ("half", "half"), ("digits", "digits")):
        with new_directory(folder / f"{name}.glow") as unfinished:
            Job(Order(unfinished, folder / f"{source}_dir", engine="native"), lambda stage: None).run()
    with train.enabled(cache_dir=folder / "cache" / "traces"):
        build().fit(np.ones((4, 4), "float32"), np.ones((4, 1), "float32"), verbose=0)
    np.save(folder / "table.npy", np.ones((4, 2), "float32"))
    for package in ("package", "my"):
        (folder / package).mkdir()
    (folder / "package" / "module.py").write_text("def task(item):\n    return item - 1\n")
    (folder / "my" / "package.py").write_text("def work(path, count):\n    assert (path, count) == ('input.csv', 3)\n")


def build(width: int = 8) -> Any:
    """A small compiled model."""
    import keras

    model = keras.Sequential([keras.Input((4,), name="x"), keras.layers.Dense(width), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    return model


def two_inputs() -> tuple[Any, dict[str, Any]]:
    """A module whose default signature has two inputs and whose other one has one."""
    import tensorflow as tf

    def spec(name: str, size: int) -> Any:
        return tf.TensorSpec([None, size], tf.float32, name=name)

    module = tf.Module()
    module.weight = tf.Variable([[1.0], [2.0]])
    both = tf.function(lambda ids, mask: {"y": tf.matmul(ids * mask, module.weight)})
    other = tf.function(lambda x: {"y": x + module.weight[0, 0]})
    return module, {
        "serving_default": both.get_concrete_function(spec("ids", 2), spec("mask", 2)),
        "other": other.get_concrete_function(spec("x", 4)),
    }


def half_plus_two() -> tuple[Any, dict[str, Any]]:
    """The model that TensorFlow Serving's documentation asks."""
    import tensorflow as tf

    module = tf.Module()
    module.weight = tf.Variable(0.5)
    served = tf.function(lambda x: {"y": x * module.weight + 2.0})
    return module, {"serving_default": served.get_concrete_function(tf.TensorSpec([None], tf.float32, name="x"))}


@contextlib.contextmanager
def names_for(topic: str) -> Iterator[dict[str, Any]]:
    """Give the names that a page or a rule starts with, and put TensorFlow back as it was when it is done."""
    import tensorflow as tf

    given = _names(topic)
    if topic == "fleet":
        _fill_storage()
    try:
        if topic in GRAPH_MODE:
            with tf.Graph().as_default() as graph, tf.compat.v1.Session() as session:
                yield {**given, **_graph_names(graph, session)}
        else:
            yield given
    finally:
        from glowplug import train

        train.disable()
        tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": False})


def _names(topic: str) -> dict[str, Any]:
    import asyncio
    import multiprocessing
    import shutil
    from concurrent.futures import ThreadPoolExecutor

    import fsspec
    import keras
    import numpy as np
    import tensorflow as tf

    rng = np.random.default_rng(1)
    x, y = rng.random((16, 4), "float32"), rng.random((16, 1), "float32")
    model = build()
    module = tf.Module()
    module.f = tf.function(lambda x: 2 * x, input_signature=[tf.TensorSpec([None, 4], tf.float32)])
    names: dict[str, Any] = {
        "asyncio": asyncio,
        "fsspec": fsspec,
        "keras": keras,
        "multiprocessing": multiprocessing,
        "np": np,
        "shutil": shutil,
        "tf": tf,
        "ThreadPoolExecutor": ThreadPoolExecutor,
        "build": build,
        "make_model": build,
        "model": model,
        "keras_model": model,
        "module": module,
        "x": x,
        "y": y,
        "a": np.ones((2, 2), "float32"),
        "b": np.ones((2, 2), "float32"),
        "path": PATHS.get(topic, "model.keras"),
        "url": Path("model.weights.h5").resolve().as_uri(),
        "local": "fetched.weights.h5",
        "input_shape": (None, 4),
        "optimizer": "sgd",
        "loss": "mse",
        "units": 8,
        "trials": 3,
        "rate": 0.1,
        "step": tf.function(lambda x, rate: tf.reduce_sum(x) * rate),
        "dataset": tf.data.Dataset.range(1, 9).map(lambda length: tf.ones([length, 32])),
        "serve": tf.function(model, input_signature=[tf.TensorSpec([None, 4], tf.float32)]),
        "context": multiprocessing.get_context("spawn"),
        "workers": 2,
        "items": [1, 2],
        "item": 1,
        "task": task,
        "run_trial": run_trial,
        "parameters": {"width": 8},
        "fetch_settings": lambda: 0.01,
        "configure": lambda model, rate: setattr(model.optimizer, "learning_rate", rate),
        "trial": SimpleNamespace(number=1),
    }
    if topic in ("tune-without-growing", "reinitialize-in-a-loop"):
        names |= _tuning_names(x, y)
    return names


def _fill_storage() -> None:
    from glowplug.cli.main import main

    assert main(["keygen", "fleet.key"]) == 0
    for name in ("half", "next"):
        assert main(["push", "model.glow", f"s3://models/{name}/1"]) == 0


def _tuning_names(x: Any, y: Any) -> dict[str, Any]:
    import keras_tuner
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    model = build()

    def objective(trial: Any) -> float:
        model.optimizer.learning_rate = trial.suggest_float("learning_rate", 1e-4, 1e-2)
        return float(model.fit(x, y, verbose=0).history["loss"][-1])

    return {"keras_tuner": keras_tuner, "study": optuna.create_study(), "objective": objective}


def _graph_names(graph: Any, session: Any) -> dict[str, Any]:
    import numpy as np
    import tensorflow as tf

    x = tf.compat.v1.placeholder(tf.float32, [None, 4])
    weight = tf.compat.v1.get_variable("weight", [4, 1], use_resource=True)
    output = tf.matmul(x, weight)
    saver = tf.compat.v1.train.Saver()
    session.run(tf.compat.v1.global_variables_initializer())
    prefix = saver.save(session, str(Path("checkpoint").resolve() / "weights"))
    batch = np.ones((2, 4), "float32")
    return {
        "graph": graph,
        "session": session,
        "x": x,
        "output": output,
        "step": tf.square(x),
        "batches": [batch, batch],
        "request": batch,
        "checkpoints": [prefix, prefix],
        "values": np.ones((4, 2), "float32"),
    }
