"""Loading and closing a model again and again leaves the process as it was."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

import glowplug

pytestmark = [pytest.mark.tensorflow, pytest.mark.core]

CODE = """
import gc, json, os, sys
import numpy as np
import glowplug

def held():
    gc.collect()
    maps = open("/proc/self/maps").read()
    resident = int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGESIZE")
    return {
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": len(os.listdir("/proc/self/task")),
        "maps": maps.count("weights.bin") + maps.count(sys.argv[1]),
        "resident": resident,
    }

x = np.ones((2, 16), np.float32)
seen = []
for round in range(50):
    with glowplug.load(sys.argv[1]) as model:
        answer = model(x)
        if round == 0:
            first = answer
        assert (answer == first).all()
    del model, answer
    seen.append(held())
print(json.dumps(seen))
"""
_SETTLED = 10  # rounds until TensorFlow's pools and the allocator have what they keep


@pytest.mark.parametrize("engine", ["native", "savedmodel"])
def test_fifty_rounds_stay_flat(
    engine: Literal["native", "savedmodel"], saved_model: Callable[[str], Path], tmp_path: Path
) -> None:
    glowplug.pack(saved_model("dense"), tmp_path / "m.glow", engine=engine)
    command = [sys.executable, "-c", CODE, str(tmp_path / "m.glow")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    settled, last = seen[_SETTLED], seen[-1]
    assert last["maps"] == 0
    assert last["descriptors"] == settled["descriptors"]
    assert last["threads"] == settled["threads"]
    assert last["resident"] - settled["resident"] < 8 << 20
