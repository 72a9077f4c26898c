"""Starts from a standby: a program's first lines against stock Python, and the first prediction of a hosted model.

    standby_start.py [--rounds 5] [--bundles DIR]

Both sides of the first part in turn, in fresh processes; the clock starts just before the process is made, so that the
client's own start counts. In the second part it starts with the request, in a process that has imported Glowplug. The
standbys run beforehand, in a directory of their own, with a warm page cache. `--bundles` names a folder with dense.glow
and resnet50.glow; without it they are packed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import bundles
import machine
import models

SCRIPTS = Path(__file__).parent / "scripts"
RUN = ["-m", "glowplug", "run", "--standby"]


def first_lines(side: str) -> int:
    """Return the nanoseconds from before the process was made to the line after the layer's result."""
    command = [*(RUN if side == "standby" else []), SCRIPTS / "first_layer.py"]
    began = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    return int(machine.run_quietly(command)) - began


def hosted(path: Path, name: str) -> dict[str, int]:
    shape, dtype = models.INPUTS[name]
    answer: dict[str, int] = json.loads(
        machine.run_quietly([SCRIPTS / "hosted.py", path, ",".join(map(str, shape)), dtype])
    )
    return answer


def measure(rounds: int, folder: Path | None) -> dict[str, Any]:
    paths = {name: (folder / f"{name}.glow" if folder else bundles.bundle(name)) for name in ("dense", "resnet50")}
    raw: dict[str, list[Any]] = {"stock": [], "standby": [], **{name: [] for name in paths}}
    for side in ("standby", "stock"):  # starts the standby, and fills the page cache
        first_lines(side)
    for name, path in paths.items():
        hosted(path, name)
    for number in range(rounds):
        for side in ("stock", "standby") if number % 2 == 0 else ("standby", "stock"):
            raw[side].append(first_lines(side))
            print(f"  {side} {raw[side][-1] / 1e9:.3f} s", file=sys.stderr, flush=True)
        for name, path in paths.items():
            raw[name].append(hosted(path, name))
            print(f"  {name} {raw[name][-1]['first_ns'] / 1e9:.3f} s", file=sys.stderr, flush=True)
    stock, warm = median(raw["stock"]), median(raw["standby"])
    models_found = {
        name: {key: int(median(one[key] for one in raw[name])) for key in ("load_ns", "first_ns", "steady_ns")}
        for name in paths
    }
    for one in models_found.values():
        one["over_a_steady_call_ns"] = one["first_ns"] - one["steady_ns"]
    return {
        "first_lines": {"stock_ns": int(stock), "standby_ns": int(warm), "times_sooner": round(stock / warm, 1)},
        "hosted": models_found,
        "rounds": raw,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--bundles", type=Path)
    args = parser.parse_args()
    machine.prepare()
    with tempfile.TemporaryDirectory(prefix="standby-") as directory:
        os.environ["GLOWPLUG_STANDBY_DIR"] = directory
        try:
            found = measure(args.rounds, args.bundles)
        finally:
            subprocess.run(
                [sys.executable, "-m", "glowplug", "standby", "stop", "--all"], check=True, stdout=subprocess.DEVNULL
            )
    lines = found["first_lines"]
    stock, warm = lines["stock_ns"] / 1e9, lines["standby_ns"] / 1e9
    print(f"first lines: stock {stock:.2f} s, standby {warm:.3f} s, {lines['times_sooner']}x")
    for name, one in found["hosted"].items():
        print(f"{name}: first {one['first_ns'] / 1e6:.0f} ms, steady {one['steady_ns'] / 1e6:.1f} ms")
    machine.write_result("standby_start", {"machine": machine.describe(), **found}, partial=False)


if __name__ == "__main__":
    main()
