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
