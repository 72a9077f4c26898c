"""`pack --force`, killed again and again: the old or the new bundle is there, whole, and nothing else in the end."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from glowplug.bundle.verify import verify


@pytest.mark.slow
@pytest.mark.timeout(3600)  # a whole pack, forty times
@pytest.mark.tensorflow
def test_forty_kills_of_pack_lose_nothing(saved_model: Callable[[str], Path], tmp_path: Path) -> None:
    target = tmp_path / "the [packed] model"
    command = [
        sys.executable,
        "-m",
        "glowplug",
        "pack",
        "--prefer",
        "any",
        str(saved_model("dense")),
        "-o",
        str(target),
        "--force",
    ]
    began = time.monotonic()
    subprocess.run(command, check=True, capture_output=True)
    takes = time.monotonic() - began
    chance = random.Random(7)
    for _ in range(40):
        packing = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        time.sleep(takes * (0.5 + chance.random() * 0.55))  # what is written is written towards the end
        os.killpg(packing.pid, signal.SIGKILL)
        packing.wait()
        verify(target)
    subprocess.run(command, check=True, capture_output=True)
    verify(target)
    assert [one.name for one in tmp_path.iterdir()] == [target.name]
