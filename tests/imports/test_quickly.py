"""`train.enable()` before the program's own import of TensorFlow: imported as `glowplug run` would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src"
PROGRAM = """
import json, sys
IMPORTS
from glowplug import train
train.enable()
import keras, tensorflow as tf
put_off = [name for name in ("tensorflow._api.v2.raw_ops", "tensorflow._api.v2.tpu") if name not in sys.modules]
ours = [type(each).__name__ for each in sys.meta_path if type(each).__module__.startswith("glowplug.imports")]
print(json.dumps({"put_off": len(put_off), "watchers": ours.count("Watcher"), "page": tf.raw_ops.AddV2.__name__}))
"""


def start(folder: Path, imports: str = "", *, launcher: tuple[str, ...] = (), **variables: str) -> dict[str, object]:
    script = folder / "program.py"
    script.write_text(PROGRAM.replace("IMPORTS", imports), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(SRC), "GLOWPLUG_CACHE_DIR": str(folder / "cache"), **variables}
    done = subprocess.run(
        [sys.executable, *launcher, str(script)], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-4000:]
    document: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return document


@pytest.mark.tensorflow
def test_enabling_imports_quickly(tmp_path):
    for _ in ("learns", "has learned"):
        assert start(tmp_path) == {"put_off": 2, "watchers": 1, "page": "add_v2"}
    archives = list((tmp_path / "cache").rglob("*.code"))
    assert len(archives) == 1


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("imports", "variables"),
    [("import tensorflow", {}), ("import keras", {}), ("", {"GLOWPLUG_IMPORTS": "0"})],
    ids=["TensorFlow is there", "Keras is there", "switched off"],
)
def test_an_import_that_is_the_programs_own_affair(imports, variables, tmp_path):
    assert start(tmp_path, imports, **variables) == {"put_off": 0, "watchers": 0, "page": "add_v2"}


@pytest.mark.tensorflow
def test_under_run_it_is_accelerated_once(tmp_path):
    told = start(tmp_path, launcher=("-m", "glowplug", "run", "--no-standby"))
    assert told == {"put_off": 2, "watchers": 1, "page": "add_v2"}
