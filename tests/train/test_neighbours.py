"""Other libraries in the same process: what they hook into TensorFlow does not keep steps from being restored."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.tensorflow

SCRIPT = """
import importlib, json, sys
for name in sys.argv[2:]:
    importlib.import_module(name)
from glowplug import train
train.enable(sys.argv[1])
from tests.train import models
result = models.trained(models.small(custom=models.Scaled))
print(json.dumps([result, train.counts()]))
"""


@pytest.mark.parametrize("name", ["tf_keras", "tensorflow_text"])
def test_a_step_is_restored_beside(name, tmp_path, run_script):
    from pathlib import Path

    pytest.importorskip(name)
    root = Path(__file__).parents[2]
    path = {"PYTHONPATH": f"{root / 'src'}:{root}"}
    first, counts = run_script(SCRIPT, str(tmp_path / "cache"), name, **path)
    assert counts == {"traced": 1, "stored": 1}
    assert run_script(SCRIPT, str(tmp_path / "cache"), name, **path) == [first, {"restored": 1}]


LEGACY = """
import json, sys
from glowplug import train
early = sys.argv[2] == "early"
if early:
    import tf_keras
if sys.argv[1]:
    train.enable(sys.argv[1])
import tf_keras
import numpy as np
tf_keras.utils.set_random_seed(1)
model = tf_keras.Sequential([tf_keras.layers.Dense(2, input_shape=(3,))])
model.compile("sgd", "mse")
history = model.fit(np.ones((8, 3)), np.ones((8, 2)), batch_size=4, epochs=2, verbose=0).history
print(json.dumps([history, train.counts()]))
"""


@pytest.mark.parametrize("when", ["early", "late"])
def test_the_steps_of_tf_keras_stay_stock_and_one_line_says_so(when, tmp_path, run_script):
    pytest.importorskip("tf_keras")
    expected, _ = run_script(LEGACY, "", when)
    assert "glowplug:" not in run_script.stderr
    assert run_script(LEGACY, str(tmp_path / "cache"), when)[0] == expected
    said = [line for line in run_script.stderr.splitlines() if "glowplug:" in line]
    assert len(said) == 1
    assert "tf_keras" in said[0]
