"""How long `glowplug pack` takes and how much memory it needs at most: pack.py [MODEL ...]

The bound on memory is three times the weights plus 1 GB; the weights are those of the bundle.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import machine
import models


def pack(source: Path, target: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "glowplug", "pack", str(source), "-o", str(target), "--engine", "native", "--json"]
    began = time.monotonic_ns()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    document = json.loads(process.stdout.read())
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)  # it has been waited for
    duration = time.monotonic_ns() - began
    weights = document["manifest"]["files"]["weights.bin"]["size"]
    return {
        "duration_ns": duration,
        "stages_ns": document["stages_ns"],
        "weights_bytes": weights,
        "max_rss_bytes": usage.ru_maxrss * 1024,
        "allowed_rss_bytes": 3 * weights + 10**9,
    }


def main() -> None:
    machine.prepare()
    results = {}
    for name in sys.argv[1:] or ["resnet50", "encoder"]:
        source = models.saved_model(name)
        with tempfile.TemporaryDirectory(prefix="glowplug-bench-") as scratch:
            one = results[name] = pack(source, Path(scratch) / "model.glow")
        print(
            f"{name}: {one['duration_ns'] / 1e9:.1f} s, peak {one['max_rss_bytes'] / 1e6:.0f} MB "
            f"of {one['allowed_rss_bytes'] / 1e6:.0f} MB allowed"
        )
    machine.write_result("pack", {"machine": machine.describe(), "models": results}, partial=len(sys.argv) > 1)


if __name__ == "__main__":
    main()
