"""A program under stock Python against the same program under `glowplug run`, in turn, in fresh processes.

    run_start.py [import] [cold] [prefetch] [encoder] [resnet50] [--rounds 5] [--train SCRIPT]

`import`: process start to the line after `import tensorflow, keras`, a layer called once and its result printed.
`cold`: the same with the page cache dropped before each start (root). `prefetch`: the same, with a warm page cache, of
`glowplug run --no-prefetch` against `glowplug run`: what reading ahead costs where there is nothing to read. `encoder`,
`resnet50`: the end of the first training step of SCRIPT, by its own clock, which begins with its first line: it prints
`to_step1_s` and `losses`.
What is named is measured; the rest of the result file stays.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import machine
from first_prediction import drop_page_cache

LAYER = Path(__file__).parent / "scripts" / "layer.py"
RUN = ["-m", "glowplug", "run", "--no-standby"]
COMMANDS = {"stock": [], "glowplug": RUN, "no_prefetch": [*RUN, "--no-prefetch"]}
SIDES = {"prefetch": ("no_prefetch", "glowplug")}  # before and after; of the others, stock and glowplug
CACHE = machine.CACHE / "run_start"


def launch(side: str, words: list[str]) -> tuple[int, str]:
    """Run a program; return when it began, of the monotonic clock, and what it printed."""
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": str(machine.ROOT / "src")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment["GLOWPLUG_CACHE_DIR"] = str(CACHE)
    began = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    done = subprocess.run([sys.executable, *COMMANDS[side], *words], env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{done.stderr}{words} failed with exit code {done.returncode}")
    return began, done.stdout


def import_once(side: str) -> dict[str, Any]:
    began, output = launch(side, [str(LAYER)])
    *shown, mark = output.splitlines()
    return {"ns": int(mark) - began, "shown": shown}


def train_once(side: str, script: Path, name: str) -> dict[str, Any]:
    _, output = launch(side, [str(script), name])
    document = json.loads(output.splitlines()[-1])
    return {"ns": round(document["to_step1_s"] * 1e9), "shown": document["losses"]}


def measure(once: Any, rounds: int, sides: tuple[str, str], *, cold: bool = False) -> dict[str, Any]:
    for side in (sides[0], "glowplug", "glowplug", "glowplug"):  # the first starts of ours learn
        once(side)
    raw: dict[str, list[dict[str, Any]]] = {side: [] for side in sides}
    for number in range(rounds):
        for side in sides if number % 2 == 0 else sides[::-1]:
            if cold:
                drop_page_cache()
            raw[side].append(once(side))
            print(f"  {side} {raw[side][-1]['ns'] / 1e9:.2f} s", file=sys.stderr, flush=True)
    medians = {side: int(median(one["ns"] for one in runs)) for side, runs in raw.items()}
    before, after = (medians[side] for side in sides)
    return {
        "median_ns": medians,
        "lowest_ns": {side: min(one["ns"] for one in runs) for side, runs in raw.items()},
        "highest_ns": {side: max(one["ns"] for one in runs) for side, runs in raw.items()},
        "times_sooner": round(before / after, 2),
        "same_output": len({json.dumps(one["shown"]) for runs in raw.values() for one in runs}) == 1,
        "rounds": raw,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "what", nargs="*", choices=("import", "cold", "prefetch", "encoder", "resnet50"), default=["import"]
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--train", type=Path, default=machine.ROOT.parent / "shared" / "baseline" / "train_stock.py")
    args = parser.parse_args()
    machine.prepare()
    path = machine.RESULTS / "run_start.json"
    document: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    for what in args.what:
        sides = SIDES.get(what, ("stock", "glowplug"))
        if what in ("encoder", "resnet50"):
            result = measure(lambda side, what=what: train_once(side, args.train, what), args.rounds, sides)
        else:
            result = measure(import_once, args.rounds, sides, cold=what == "cold")
        document[what] = {"machine": machine.describe(), **result}
        before, after = (result["median_ns"][side] / 1e9 for side in sides)
        print(
            f"{what:<10} {before:6.2f} s  {after:6.2f} s  {result['times_sooner']:5.2f}x  same: {result['same_output']}"
        )
        machine.write_result("run_start", document, partial=False)


if __name__ == "__main__":
    main()
