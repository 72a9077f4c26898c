"""Gaps of an event loop while `load_async` loads a model: load_async.py [--rounds N] [MODEL ...]

Fresh processes. A timer fires every millisecond; a gap is the time between two of its calls. The bar is 20 ms; `idle`
shows what the machine does to the timer while nothing is loaded.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

import bundles
import machine

SCRIPT = Path(__file__).parent / "scripts" / "heartbeat.py"
WAYS = ("async", "ready", "idle")
MODELS = ("dense", "resnet50", "encoder")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("models", nargs="*")
    args = parser.parse_args()
    machine.prepare()
    results: dict[str, Any] = {}
    for name in args.models or MODELS:
        path = bundles.bundle(name)
        runs: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
        for _ in range(args.rounds):
            for way in WAYS:
                runs[way].append(json.loads(machine.run_quietly([SCRIPT, path, way])))
        results[name] = runs
        for way, found in runs.items():
            gaps = sorted(one["longest_gap_s"] * 1000 for one in found)
            load = statistics.median(one["load_s"] for one in found)
            print(f"{name} {way}: longest gap {statistics.median(gaps):.1f} ms ({gaps[-1]:.1f} at most), {load:.2f} s")
    partial = bool(args.models) or args.rounds < 10
    machine.write_result("load_async", {"machine": machine.describe(), "models": results}, partial=partial)


if __name__ == "__main__":
    main()
