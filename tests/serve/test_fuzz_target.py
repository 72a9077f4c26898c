"""A short, seeded run of the fuzz target for messages, bodies and tensors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TARGET = Path(__file__).parent.parent / "fuzz" / "fuzz_tensor_proto.py"


def test_seeded_run_finds_nothing():
    command = [sys.executable, TARGET, "--runs", "1500", "--seed", "7"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[-2000:]
    assert "1500 runs" in result.stdout
    assert ": 0" not in result.stdout, "each decoder accepted something"
