"""TensorFlow's threads do not survive a fork: in the child, a model raises at once instead of hanging."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = [pytest.mark.tensorflow, pytest.mark.core]

CODE = """
import json, os, sys, time
import numpy as np
import glowplug

x = np.ones((2, 16), np.float32)
model = glowplug.load(sys.argv[1], **json.loads(sys.argv[2]))
model(x)
read, write = os.pipe()
if os.fork() == 0:
    seen = []
    began, busy = time.monotonic(), time.process_time()
    for attempt in (lambda: model(x), lambda: glowplug.load(sys.argv[1], **json.loads(sys.argv[2]))):
        try:
            attempt()
            seen.append("answered")
        except glowplug.GlowplugError as error:
            seen.append(type(error).__name__ + ": " + str(error))
    took, spent = time.monotonic() - began, time.process_time() - busy
    model.close()
    os.write(write, json.dumps([seen, took, spent]).encode())
    os._exit(0)
os.close(write)
print(os.read(read, 10000).decode())
os.wait()
assert model(x).shape == (2, 3)
model.close()
"""


@pytest.mark.parametrize("engine", ["native", "savedmodel"])
def test_a_model_raises_after_a_fork(
    engine: str, bundle: Callable[[str], Path], saved_model: Callable[[str], Path], tmp_path: Path
) -> None:
    directory = bundle("dense")
    if engine == "savedmodel":
        import glowplug

        directory = tmp_path / "m.glow"
        glowplug.pack(saved_model("dense"), directory, engine="savedmodel")
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(directory), json.dumps({"trust": True})],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    seen, took, spent = json.loads(done.stdout)
    for text in seen:
        assert text.startswith("ForkedError: ")
        assert "after the fork" in text
    assert took < 30  # a hang is what this is about
    assert spent < 0.1  # of the processor: on a busy machine the clock says nothing about us


def test_a_process_that_only_opened_the_library_may_fork(bundle: Callable[[str], Path]) -> None:
    code = (
        "import os, sys, numpy as np, glowplug\n"
        "from glowplug.runtime.library import open_library\n"
        "open_library()\n"
        "if os.fork() == 0:\n"
        "    os._exit(glowplug.load(sys.argv[1])(np.ones((2, 16), np.float32)).shape[0])\n"
        "sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(bundle("dense"))], timeout=60, capture_output=True)
    assert done.returncode == 2, done.stderr
