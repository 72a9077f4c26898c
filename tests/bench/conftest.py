"""A tiny model, its bundle, another bundle that answers something else, and a question for all of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from glowplug.bench.contestant import Contestant, Question
from glowplug.bench.contestants.start import write_arrays

_BUILD = """
import sys
import tensorflow as tf

class Scale(tf.Module):
    def __init__(self, factor):
        self.factor = tf.Variable(tf.fill((4,), factor))

    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, name="x")])
    def __call__(self, x):
        return {"y": x * self.factor}

for path, factor in ((sys.argv[1], 2.0), (sys.argv[2], 3.0)):
    model = Scale(factor)
    tf.saved_model.save(model, path, signatures=model.__call__)
"""


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`twice` and `thrice` as SavedModels and, packed, as bundles."""
    folder = tmp_path_factory.mktemp("bench")
    subprocess.run([sys.executable, "-c", _BUILD, folder / "twice", folder / "thrice"], check=True, capture_output=True)
    for name in ("twice", "thrice"):
        words = [folder / name, "-o", folder / f"{name}.glow", "--engine", "native"]
        subprocess.run([sys.executable, "-m", "glowplug", "pack", *words], check=True, capture_output=True)
    return folder


@pytest.fixture(scope="session")
def question(tmp_path_factory: pytest.TempPathFactory) -> Question:
    described = write_arrays(str(tmp_path_factory.mktemp("inputs")), {"x": np.ones((1, 4), np.float32)})
    return Question("serving_default", tuple(described))


@pytest.fixture(scope="session")
def bundle_of(folder: Path):
    """Return the contestant for one of the bundles."""

    def make(name: str) -> Contestant:
        model = folder / f"{name}.glow"
        return Contestant(name, name.title(), "glowplug_bundle", Path(sys.executable), model, ("glowplug", "numpy"))

    return make


@pytest.fixture
def faulty(tmp_path: Path):
    """Return a contestant whose interpreter is a shell script."""

    def make(script: str) -> Contestant:
        python = tmp_path / "python"
        python.write_text(f"#!/bin/sh\n{script}\n")
        python.chmod(0o755)
        return Contestant("faulty", "Faulty", "none", python, tmp_path)

    return make
