"""The second run of a training script to the end of step one: stock Python against a standby with the trace cache.

    standby_train.py encoder|resnet50 ... [--rounds 3] [--train SCRIPT]

In turn, in fresh processes. SCRIPT prints JSON with `to_step1_s`, by its own clock that begins with its first line, and
`losses`; what comes before its first line (a fork and the client's start) is added from outside. The first run through
the standby fills the cache and is not counted.
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

import machine

SIDES = {"stock": [], "standby": ["-m", "glowplug", "run", "--standby"]}
SCRIPT = machine.ROOT.parent / "shared" / "baseline" / "train_stock.py"
BEGIN = "import time; print(time.clock_gettime_ns(time.CLOCK_MONOTONIC), flush=True)"


def before_first_line(side: str) -> float:
    """Return the seconds from before the process is made to a program's first line."""
    began = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    return (int(machine.run_quietly([*SIDES[side], "-c", BEGIN])) - began) / 1e9


def train(side: str, script: Path, name: str) -> dict[str, Any]:
    found = json.loads(machine.run_quietly([*SIDES[side], script, name]))
    lead = before_first_line(side)
    return {"to_step1_s": found["to_step1_s"] + lead, "before_first_line_s": lead, "losses": found["losses"]}


def measure(name: str, script: Path, rounds: int) -> dict[str, Any]:
    raw: dict[str, list[dict[str, Any]]] = {side: [] for side in SIDES}
    train("standby", script, name)
    for number in range(rounds):
        for side in SIDES if number % 2 == 0 else reversed(SIDES):
            raw[side].append(train(side, script, name))
            print(f"  {name} {side} {raw[side][-1]['to_step1_s']:.2f} s", file=sys.stderr, flush=True)
    stock, warm = (median(one["to_step1_s"] for one in raw[side]) for side in SIDES)
    return {"stock_s": stock, "standby_s": warm, "times_sooner": round(stock / warm, 2), "rounds": raw}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", choices=("encoder", "resnet50"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--train", type=Path, default=SCRIPT)
    args = parser.parse_args()
    machine.prepare()
    results = {}
    with tempfile.TemporaryDirectory(prefix="standby-") as directory:
        os.environ["GLOWPLUG_STANDBY_DIR"] = directory
        os.environ["GLOWPLUG_CACHE_DIR"] = f"{directory}/cache"
        try:
            for name in args.models:
                results[name] = measure(name, args.train, args.rounds)
                one = results[name]
                print(f"{name}: stock {one['stock_s']:.1f} s, standby {one['standby_s']:.2f} s, {one['times_sooner']}x")
        finally:
            subprocess.run(
                [sys.executable, "-m", "glowplug", "standby", "stop", "--all"], check=True, stdout=subprocess.DEVNULL
            )
    for name, one in results.items():
        machine.write_result(f"standby_train_{name}", {"machine": machine.describe(), **one}, partial=False)


if __name__ == "__main__":
    main()
