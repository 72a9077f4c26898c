"""A tiny model and its bundle, and a way to run the command in a process of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from glowplug.cli.main import main

Run = Callable[..., subprocess.CompletedProcess[str]]

# TensorFlow 2.18 has a second logger inside libtensorflow_cc, which no setting reaches and which stock users see too.
_NOTICES = ("WARNING: All log messages before absl::InitializeLog()", "I0000 00:00:")


def without_notices(text: str) -> str:
    """Return stderr without TensorFlow's notices. Its warnings and errors stay."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(_NOTICES))


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of every process that the tests start: a state directory of its own, and this source tree."""
    source = str(Path(__file__).parents[2] / "src")
    return {
        **{name: value for name, value in os.environ.items() if name not in ("GLOWPLUG_DEBUG", "TF_CPP_MIN_LOG_LEVEL")},
        "XDG_STATE_HOME": str(tmp_path_factory.mktemp("cli-state")),
        "PYTHONPATH": os.pathsep.join(filter(None, (source, os.environ.get("PYTHONPATH")))),
        "COLUMNS": "100",
    }


@pytest.fixture(scope="session")
def run(environment: dict[str, str]) -> Run:
    """Run `glowplug` in a fresh process."""

    def glowplug(*arguments: object, **overrides: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "glowplug", *map(str, arguments)],
            env={**environment, **overrides},
            capture_output=True,
            text=True,
            timeout=300,
        )
        done.stderr = without_notices(done.stderr)
        return done

    return glowplug


@pytest.fixture
def call(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Run `glowplug` in this process; returns the exit code, stdout and stderr."""
    monkeypatch.setenv("XDG_STATE_HOME", environment["XDG_STATE_HOME"])
    monkeypatch.delenv("GLOWPLUG_DEBUG", raising=False)

    def glowplug(*arguments: object) -> tuple[int, str, str]:
        capfd.readouterr()
        try:
            code = main([str(one) for one in arguments])
        except SystemExit as leaving:
            code = int(leaving.code or 0)
        out, err = capfd.readouterr()
        return code, out, without_notices(err)

    return glowplug


_BUILD = """
import sys
import tensorflow as tf

class Tiny(tf.Module):
    def __init__(self):
        self.weight = tf.Variable(tf.reshape(tf.range(12, dtype=tf.float32), (3, 4)))

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, name="x")])
    def apply(self, x):
        return {"y": x @ self.weight}

    @tf.function(
        input_signature=[tf.TensorSpec([None], tf.string, name="text"), tf.TensorSpec([None], tf.int64, name="count")]
    )
    def repeat(self, text, count):
        return {"length": tf.cast(tf.strings.length(text), tf.int64) * count, "upper": tf.strings.upper(text)}

model = Tiny()
tf.saved_model.save(model, sys.argv[1], signatures={"serving_default": model.apply, "repeat": model.repeat})
"""


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]) -> Path:
    """A SavedModel with two signatures: `x @ weight`, and one of two inputs, two outputs and strings."""
    directory = tmp_path_factory.mktemp("tiny") / "saved_model"
    environment = {"TF_CPP_MIN_LOG_LEVEL": "3", **environment}
    subprocess.run([sys.executable, "-c", _BUILD, str(directory)], env=environment, check=True, capture_output=True)
    return directory


@pytest.fixture(scope="session")
def shared_bundle(tiny_model: Path, run: Run) -> Path:
    """The tiny model, packed once. For reading only."""
    path = tiny_model.parent / "tiny.glow"
    done = run("pack", "--prefer", "any", tiny_model, "-o", path)
    assert done.returncode == 0, done.stderr
    return path


@pytest.fixture
def tiny_bundle(shared_bundle: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(shared_bundle, tmp_path / "tiny.glow"))


@pytest.fixture
def x_file(tmp_path: Path) -> Path:
    path = tmp_path / "x.npy"
    np.save(path, np.ones((2, 3), np.float32))
    return path
