"""Measures what a look through stock code costs: the first of a process, one without a change, one in a forked child.

    python bench/survey.py [--rounds 7]

Each round is a fresh process. Times are CPU seconds. Writes bench/results/survey.json.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

import machine

INSIDE = """
import json, os, time
import keras
from glowplug.train.fingerprint.stock.survey import survey

def spent():
    began = time.process_time_ns()
    survey()
    return (time.process_time_ns() - began) / 1e9

found = {"first": spent(), "unchanged": spent()}
reading, writing = os.pipe()
if not os.fork():
    from glowplug import train
    train.enable(os.environ["CACHE"])
    os.write(writing, json.dumps(spent()).encode())
    os._exit(0)
os.wait()
found["forked, after enable"] = json.loads(os.read(reading, 100))
print(json.dumps(found))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    measured: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CACHE": f"{folder}/cache"}
            done = subprocess.run(
                [sys.executable, "-c", INSIDE], env=environment, check=True, capture_output=True, text=True, timeout=120
            )
            for name, seconds in json.loads(done.stdout.splitlines()[-1]).items():
                measured.setdefault(name, []).append(seconds)
    for name, seconds in measured.items():
        print(f"{name:<22} {statistics.median(seconds):.3f} s  ({min(seconds):.3f} to {max(seconds):.3f})")
    machine.write_result("survey", {"machine": machine.describe(), "cpu_s": measured}, partial=rounds < 7)


if __name__ == "__main__":
    main()
