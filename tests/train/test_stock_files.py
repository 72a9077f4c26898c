"""A trace that was made with one state of stock code is never used with another."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from glowplug.core.disk import cache_files

pytestmark = pytest.mark.tensorflow

STEP = """
import json, sys
import keras, numpy as np
from glowplug import train
train.enable(sys.argv[1])
keras.utils.set_random_seed(1)
model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
model.compile("sgd", "mse")
if len(sys.argv) > 2:
    with open(sys.argv[2], "a") as stream:
        stream.write("# changed\\n")
model.fit(np.ones((4, 3), "float32"), np.ones((4, 2), "float32"), verbose=0)
print(json.dumps(train.counts()))
"""


def test_an_edit_in_place_is_a_miss_and_undoing_it_is_none(run_script: Callable[..., Any], tmp_path: Path) -> None:
    spec = importlib.util.find_spec("namex")  # part of Keras' foundation, and small
    assert spec is not None
    assert spec.origin is not None
    shutil.copytree(Path(spec.origin).parent, tmp_path / "namex", ignore=shutil.ignore_patterns("__pycache__"))
    edited = tmp_path / "namex" / "export.py"
    original = edited.read_bytes()
    settings = {cache_files.VARIABLE: str(tmp_path / "cache")}

    def fit(*arguments: str) -> Any:
        return run_script(STEP, str(tmp_path / "traces"), *arguments, **settings)

    assert fit().get("stored") == 1, run_script.stderr  # type: ignore[attr-defined]
    edited.write_bytes(original + b"# another\n")
    assert fit().get("restored", 0) == 0
    assert "files: namex" in run_script.stderr  # type: ignore[attr-defined]
    edited.write_bytes(original)
    assert fit()["restored"] == 1
    counts = fit(str(edited))  # while the program runs: it cannot know which of the two it has loaded
    assert (counts.get("restored", 0), counts.get("stored", 0), counts["refused"]) == (0, 0, 1)
    assert "files of" in run_script.stderr  # type: ignore[attr-defined]
