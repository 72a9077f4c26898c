"""What cannot change a graph is no reason to trace again: each case is the second run of one program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .conftest import SRC

pytestmark = pytest.mark.tensorflow

HARMLESS = {
    "TF_CPP_MIN_LOG_LEVEL": "0",
    "TF_CPP_VMODULE": "nothing=0",
    "TF_NUM_INTRAOP_THREADS": "2",
    "TF_DUMP_GRAPH_PREFIX": "/nowhere",
    "KERAS_BACKEND": "tensorflow",
    "KERAS_HOME": "/nowhere",
    "KERAS_MAX_EPOCHS": "1000",
    "TF_VAR_database_password": "secret",
    "TF_TOKEN_app_terraform_io": "secret",
    "TF_CLI_ARGS_plan": "-refresh=false",
    "TF_LOG": "trace",
    "TF_WORKSPACE": "production",
}


@pytest.mark.parametrize("name", HARMLESS)
def test_a_variable_that_cannot_change_a_graph(name, tmp_path, monkeypatch):
    from glowplug import train
    from tests.train import models

    monkeypatch.delenv(name, raising=False)
    x, y = models.data()
    with train.enabled(tmp_path / "cache"):
        models.small().train_on_batch(x, y)
        monkeypatch.setenv(name, HARMLESS[name])
        models.small().train_on_batch(x, y)
        assert train.counts() == {"traced": 1, "stored": 1, "restored": 1}


def test_a_model_that_was_saved_before(tmp_path):
    """Saving makes Keras remember which attributes it passes over."""
    from glowplug import train
    from tests.train import models

    x, y = models.data()
    with train.enabled(tmp_path / "cache"):
        models.small().train_on_batch(x, y)
        models.small().save(tmp_path / "model.keras")
        models.small().train_on_batch(x, y)
        assert train.counts() == {"traced": 1, "stored": 1, "restored": 1}


def test_a_model_that_was_loaded(tmp_path):
    """Its variables know in which thread they were loaded, and no key does."""
    import keras

    from glowplug import train
    from glowplug.train.fingerprint.variables import variable_attributes
    from tests.train import models

    models.small().save(tmp_path / "model.keras")
    with train.enabled(tmp_path / "cache"):
        variable = keras.models.load_model(tmp_path / "model.keras").variables[0]
    assert hasattr(variable._value, "_glowplug_read_early")
    assert not [name for name, _ in variable_attributes(variable) if "glowplug" in name]


def look_up(which):
    """Return a model with a layer that reads an attribute by a name that is not in its code."""
    import keras
    from keras import layers

    class Chosen(layers.Layer):
        def call(self, x):
            return x * getattr(self, self.which)

    keras.utils.clear_session()  # names count where attributes are read by names
    keras.utils.set_random_seed(1)
    layer = Chosen()
    layer.which, layer.factor = which, 2.0
    model = keras.Sequential([keras.Input((6,)), layer, layers.Dense(3)])
    model.compile("sgd", "mse")
    return model


def test_packages_that_register_classes_with_private_names(tmp_path, monkeypatch):
    """pandas does, which Keras looks for: no name is put together from what a key says of such a class."""
    import collections.abc
    import importlib

    import numpy as np

    from glowplug import train

    place = tmp_path / "site-packages"
    place.mkdir()
    (place / "_slices.py").write_text("class _Slice:\n    pass\n")
    monkeypatch.syspath_prepend(place)
    kept = collections.abc.Sequence.register(importlib.import_module("_slices")._Slice)
    look_up("factor").train_on_batch(np.ones((2, 6)), np.ones((2, 3)))  # pytest's imports are code that runs in a trace
    with train.enabled(tmp_path / "cache"):
        for _ in range(2):
            look_up("factor").train_on_batch(np.ones((2, 6)), np.ones((2, 3)))
        assert train.counts() == {"traced": 1, "stored": 1, "restored": 1}
    assert kept.__name__ == "_Slice"


def test_packages_that_register_compiled_classes(tmp_path, monkeypatch):
    """scipy does: that such a class has a `__getattribute__` of its own makes no step read attributes by names."""
    import copyreg

    import keras
    import numpy as np

    from glowplug import train

    kind = pytest.importorskip("_cffi_backend").Lib
    assert "__getattribute__" in vars(kind)
    monkeypatch.delitem(sys.modules, "_cffi_backend")  # scipy's says that it is from a module that there is not
    monkeypatch.setitem(copyreg.dispatch_table, kind, repr)

    class Private(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.kind = "__hidden"

        def call(self, x):
            return x * 2.0

    with train.enabled(tmp_path / "cache"):
        for _ in range(2):
            keras.utils.set_random_seed(1)
            model = keras.Sequential([keras.Input((6,)), Private(), keras.layers.Dense(3)])
            model.compile("sgd", "mse")
            model.train_on_batch(np.ones((2, 6)), np.ones((2, 3)))
        assert train.counts() == {"traced": 1, "stored": 1, "restored": 1}


def test_operations_of_xla_that_only_compute(tmp_path):
    """As in the forward-forward example of keras.io, which writes labels over the corners of its images."""
    import keras
    import numpy as np
    from tensorflow.compiler.tf2xla.python import xla

    from glowplug import train

    class Labelled(keras.layers.Layer):
        def call(self, x):
            return xla.dynamic_update_slice(x, x[:1, :2] * 2.0, [0, 1])

    losses = []
    with train.enabled(tmp_path / "cache"):
        for _ in range(2):
            keras.utils.set_random_seed(1)
            model = keras.Sequential([keras.Input((6,)), Labelled(), keras.layers.Dense(3)])
            model.compile("sgd", "mse")
            losses.append(model.train_on_batch(np.arange(12.0).reshape(2, 6), np.ones((2, 3))))
        assert train.counts() == {"traced": 1, "stored": 1, "restored": 1}
    assert losses[0] == losses[1]


PROGRAM = """
import json
IMPORTS
import keras, numpy as np, tensorflow as tf
from keras import layers
import drawing

KINDS = ("scale", "shift", "clip", "round")

class Mine(layers.Layer):
    def __init__(self, kinds):
        super().__init__()
        self.kinds = kinds
        self.table = {"a": 1.0, "b": 2.0}
    def call(self, x):
        if "scale" in self.kinds and "one" in {"one", "two", "seven"}:
            x = x * 2.0
        return x + self.table["a"] * len(KINDS)
    def show(self):
        drawing.fetched()

keras.utils.set_random_seed(1)
model = keras.Sequential([keras.Input((4,)), layers.Dense(3), Mine(KINDS), layers.Dense(1)])
model.compile("adam", "mse")
loss = model.train_on_batch(np.ones((2, 4)), np.ones((2, 1)))
from glowplug import train as glowplug_train
print(json.dumps({"loss": float(loss), "counts": glowplug_train.counts()}))
"""
# What a method that no step calls leads to: it must not run in a trace, and imports more only when it runs.
DRAWING = """
def fetched():
    import ssl
    import certificates
    return ssl.create_default_context(cafile=certificates.where())
"""
CERTIFICATES = "def where():\n    return __file__\n"
ENABLE = "from glowplug import train; train.enable()"
SAME_SEED = {"PYTHONHASHSEED": "1"}

# How the second run differs from the first: what it imports first, whether `run` starts it, and its variables.
SECOND_RUNS: dict[str, tuple[str, bool, dict[str, str]]] = {
    "another hash seed": (ENABLE, False, {"PYTHONHASHSEED": "2"}),
    "TensorFlow imported first": (f"import tensorflow\n{ENABLE}", False, {}),
    "Keras imported first": (f"import keras\n{ENABLE}", False, {}),
    "other modules imported before": (f"import decimal, sqlite3, unittest.mock, numpy.testing\n{ENABLE}", False, {}),
    "other modules imported after": (f"{ENABLE}\nimport asyncio, decimal, sqlite3, unittest.mock", False, {}),
    "what a method that is not called imports": (f"import certificates\n{ENABLE}", False, {}),
    "flags of patterns combined": (
        f"import re; re.compile('a', re.I | re.S | re.A | re.X)\n{ENABLE}",
        False,
        SAME_SEED,
    ),
    "parts of TensorFlow imported by name": (f"import tensorflow.lite, tensorflow.compat.v1\n{ENABLE}", False, {}),
    "the backend named": (ENABLE, False, {"KERAS_BACKEND": "tensorflow"}),
    "no colours, another language": (ENABLE, False, {"NO_COLOR": "1", "LANG": "C.UTF-8", "TERM": "dumb"}),
    "run in place of enable": ("", True, {}),
    "enable under run": (ENABLE, True, {}),
}


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    folder = tmp_path_factory.mktemp("needless")
    told = start(folder, ENABLE, under_run=False, PYTHONHASHSEED="1")  # the others have one each
    assert told["counts"] == {"traced": 1, "stored": 1}
    return folder, told


def start(folder: Path, imports: str, *, under_run: bool, **variables: str) -> Any:
    script = folder / "program.py"
    for name, text in (("drawing", DRAWING), ("certificates", CERTIFICATES)):
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    script.write_text(PROGRAM.replace("IMPORTS", imports), encoding="utf-8")
    launcher = ["-m", "glowplug", "run", "--no-standby"] if under_run else []
    done = subprocess.run(
        [sys.executable, *launcher, str(script)],
        env={**os.environ, "PYTHONPATH": str(SRC), "GLOWPLUG_CACHE_DIR": str(folder / "cache"), **variables},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1]) | {"said": done.stderr}


@pytest.mark.parametrize("name", SECOND_RUNS)
def test_a_second_run_that_differs_in_nothing_that_matters(name, first):
    folder, told = first
    imports, under_run, variables = SECOND_RUNS[name]
    again = start(folder, imports, under_run=under_run, **variables)
    assert again["counts"] == {"restored": 1}, again["said"]
    assert again["loss"] == told["loss"]
