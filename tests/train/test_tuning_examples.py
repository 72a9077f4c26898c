"""The tuning examples run, and every trial after the first of its shape is as cheap as the next."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from glowplug import train

ROOT = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.slow,
    pytest.mark.skipif("reinitialize" not in train.__all__, reason="needs train.reinitialize"),
]


@pytest.mark.parametrize("name", ["keras_tuner", "optuna"])
def test_the_loop_does_not_grow(name):
    pytest.importorskip(name)
    if name == "keras_tuner":
        pytest.importorskip("tensorboard", reason="Keras Tuner imports it and does not ask for it")
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "tuning" / f"{name}.py", "--trials", "12"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [line for line in done.stdout.splitlines() if line.startswith("trial: ")]
    resident = [int(line.split()[-2]) for line in lines]
    assert len(lines) == 12
    assert resident[-1] - resident[5] < 12  # MB; a rebuilt model adds more than that in two trials
    assert "best: " in done.stdout
