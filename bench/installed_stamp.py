"""What the stamp of the installed packages costs a training run: installed_stamp.py [--rounds N] [--check]

A fresh process a round imports TensorFlow and Keras, then takes the stamp: with no table yet, and with one, which is
what every later run pays. The page cache is warm.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile

import machine

CODE = """
import json, time
import keras, tensorflow
from glowplug.train.fingerprint.stock.files import stock_stamps
began = time.perf_counter_ns()
stamps = stock_stamps()
took = time.perf_counter_ns() - began
print(json.dumps({"ms": took / 1e6, "packages": len(stamps)}))
"""
TARGET_MS = 20.0


def measure(cache: str) -> float:
    os.environ["GLOWPLUG_CACHE_DIR"] = cache
    return float(json.loads(machine.run_quietly(["-c", CODE]))["ms"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--check", action="store_true", help="end with 1 if a later run pays more than 20 ms")
    args = parser.parse_args()
    first, later = [], []
    for _ in range(args.rounds):
        with tempfile.TemporaryDirectory() as cache:
            first.append(measure(cache))
            later.append(measure(cache))
    result = {"machine": machine.describe(), "first_ms": first, "later_ms": later, "target_ms": TARGET_MS}
    print(
        f"first run {statistics.median(first):.0f} ms, later {statistics.median(later):.1f} ms ({args.rounds} rounds)"
    )
    machine.write_result("installed_stamp", result, partial=args.rounds < 7)
    return int(args.check and statistics.median(later) > TARGET_MS)


if __name__ == "__main__":
    sys.exit(main())
