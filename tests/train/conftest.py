"""Tools for tests of `train`: small models, a cache of one's own, and scripts in fresh processes."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# A second opinion comes when steps have taken long enough: by the clock. Tests of it ask for it.
os.environ.setdefault("GLOWPLUG_TRACE_VERIFY", "off")

SRC = Path(__file__).resolve().parents[2] / "src"


@pytest.fixture
def run_script(tmp_path: Path) -> Callable[..., Any]:
    """Run a script in a fresh process and return the JSON of its last line; `stderr` is kept on the
    function.
    """

    def run(source: str, *arguments: str, name: str = "script.py", **environment: str) -> Any:
        path = tmp_path / name
        path.write_text(source)
        completed = subprocess.run(
            [sys.executable, str(path), *arguments],
            env={**os.environ, "PYTHONPATH": str(SRC), "TF_CPP_MIN_LOG_LEVEL": "3", **environment},
            capture_output=True,
            text=True,
            timeout=500,
        )
        assert completed.returncode == 0, completed.stderr[-4000:]
        run.stderr = completed.stderr  # type: ignore[attr-defined]
        return json.loads(completed.stdout.strip().splitlines()[-1])

    return run


@pytest.fixture(autouse=True)
def switched_off() -> Any:
    """Leave no test with caching on, and none with another's settings of Keras."""
    yield
    from glowplug import train

    train.disable()
    if "keras" in sys.modules:
        import keras

        keras.config.set_dtype_policy("float32")
        keras.backend.clear_session()
        gc.freeze()  # it collects, which takes seconds once TensorFlow has kept a million objects: those stay anyway
