"""A pool whose workers each import TensorFlow, under stock Python and under `glowplug run`, in turn

    run_children.py [--rounds 3]

What `run` gives to processes that `multiprocessing` spawns: `tests/advice/scripts/spawn_pool.py` starts three,
one after the other, from launch to exit, page cache warm.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from statistics import median

import machine

SCRIPT = machine.ROOT / "tests" / "advice" / "scripts" / "spawn_pool.py"
RUN = ["-m", "glowplug", "run", "--no-standby"]
SIDES = {"stock": [], "run": RUN, "without_children": [*RUN, "--no-children"]}


def once_ns(side: str) -> int:
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": str(machine.ROOT / "src")}
    environment["GLOWPLUG_CACHE_DIR"] = str(machine.CACHE / "run_children")
    began = time.monotonic_ns()
    subprocess.run([sys.executable, *SIDES[side], SCRIPT], env=environment, capture_output=True, check=True)
    return time.monotonic_ns() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    machine.prepare()
    for side in ("run", "run", "stock"):  # the first starts of ours learn
        once_ns(side)
    raw: dict[str, list[int]] = {side: [] for side in SIDES}
    for number in range(args.rounds):
        for side in list(SIDES) if number % 2 == 0 else list(SIDES)[::-1]:
            raw[side].append(once_ns(side))
            print(f"  {side} {raw[side][-1] / 1e9:.2f} s", file=sys.stderr, flush=True)
    medians = {side: int(median(times)) for side, times in raw.items()}
    saved = 1 - medians["run"] / medians["stock"]
    print(f"three workers: stock {medians['stock'] / 1e9:.2f} s, run {medians['run'] / 1e9:.2f} s: {saved:.0%} less")
    document = {"machine": machine.describe(), "workers": 3, "median_ns": medians, "rounds_ns": raw}
    machine.write_result("run_children", document, partial=False)


if __name__ == "__main__":
    main()
