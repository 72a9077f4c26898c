"""Process start to first prediction: stock TensorFlow against Glowplug, in turn, in fresh processes.

    first_prediction.py [MODEL ...] [--rounds 5] [--cold]

The clock starts in the parent just before the process is made and stops when the first result is an array. With
--cold (root) the page cache is dropped before each start, and both kinds of result are kept in one file.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import bundles
import machine
import models

SCRIPTS = Path(__file__).parent / "scripts"
SIDES = ("stock", "glowplug")


def start(side: str, name: str) -> dict[str, Any]:
    """Run one start and return its durations in nanoseconds, from just before the process was made."""
    path = models.saved_model(name) if side == "stock" else bundles.bundle(name)
    script = SCRIPTS / ("stock.py" if side == "stock" else "fast.py")
    shape, dtype = models.INPUTS[name]
    began = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    marks = json.loads(machine.run_quietly([script, path, ",".join(map(str, shape)), dtype]))
    head = marks.pop("head")
    return {**{key.replace("_at_ns", "_ns"): mark - began for key, mark in marks.items()}, "head": head}


def drop_page_cache() -> None:
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("3")


def measure(names: list[str], rounds: int, *, cold: bool) -> dict[str, Any]:
    """Return the raw rounds and their medians for each model."""
    raw: dict[str, dict[str, list[dict[str, Any]]]] = {name: {side: [] for side in SIDES} for name in names}
    for name in names:  # build, pack and, for a warm cache, read everything once
        for side in SIDES:
            start(side, name)
    for number in range(rounds):
        for name in names:
            for side in SIDES if number % 2 == 0 else SIDES[::-1]:
                if cold:
                    drop_page_cache()
                one = start(side, name)
                raw[name][side].append(one)
                print(f"  {name} {side} {one['first_ns'] / 1e9:.2f} s", file=sys.stderr, flush=True)
    return {name: summary(sides) for name, sides in raw.items()}


def summary(sides: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    medians = {
        side: {key: int(median(one[key] for one in runs)) for key in runs[0] if key != "head"}
        for side, runs in sides.items()
    }
    firsts = {side: [one["first_ns"] for one in runs] for side, runs in sides.items()}
    heads = [one["head"] for runs in sides.values() for one in runs]
    difference = max(abs(a - b) for head in heads for a, b in zip(heads[0], head, strict=True))
    return {
        "median_ns": medians,
        "lowest_ns": {side: min(values) for side, values in firsts.items()},
        "highest_ns": {side: max(values) for side, values in firsts.items()},
        "times_sooner": round(medians["stock"]["first_ns"] / medians["glowplug"]["first_ns"], 2),
        "largest_difference": difference,
        "rounds": sides,
    }


def table(results: dict[str, Any]) -> str:
    lines = ["model      stock     glowplug  sooner"]
    for name, one in results.items():
        stock, fast = (one["median_ns"][side]["first_ns"] / 1e9 for side in SIDES)
        lines.append(f"{name:<10} {stock:6.2f} s  {fast:6.2f} s  {one['times_sooner']:5.1f}x")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(models.INPUTS)} (default: all)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cold", action="store_true", help="measure with a dropped page cache, too (root)")
    args = parser.parse_args()
    names = args.models or list(models.INPUTS)
    machine.prepare()
    document: dict[str, Any] = {"machine": machine.describe(), "rounds": args.rounds}
    document["warm"] = measure(names, args.rounds, cold=False)
    print(f"warm page cache, medians of {args.rounds}\n{table(document['warm'])}")
    if args.cold:
        document["cold"] = measure(names, args.rounds, cold=True)
        print(f"dropped page cache, medians of {args.rounds}\n{table(document['cold'])}")
    machine.write_result("first_prediction", document, partial=bool(args.models))


if __name__ == "__main__":
    main()
