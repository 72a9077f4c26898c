"""Compare what a report promises with what following its advice really saves, for the programs of `tests/advice`.

    python bench/advice_savings.py [PROGRAM ...] [--pairs N]

The program once under the probe gives the estimate of the rule that must speak of it. Then the program and its twin in
`tests/advice/fixed`, which follows the advice, run N times in turn in fresh processes without the probe; where the
advice is `glowplug run`, the twin is the program under it. The saving is the difference of the medians, from launch to
exit, with a warm page cache. The bar: the estimate is within a factor of two. Run it on an idle machine.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import advise_estimates
import machine
from tests.advice.programs import CASES, Case, prepare

ROOT = Path(__file__).resolve().parents[1]
FIXED = ROOT / "tests" / "advice" / "fixed"
NO_TIME = {"memory_grows_each_build"}  # what these save is memory


def commands(case: Case, folder: Path) -> tuple[list[str], list[str]]:
    """Return the words after `python` for a program and for its twin."""
    words = case.words(folder)
    twin = FIXED / f"{case.script}.py"
    return words, [str(twin), *words[1:]] if twin.exists() else ["-m", "glowplug", "run", *words]


def measure(case: Case, pairs: int, files: Path) -> dict[str, Any]:
    (rule,) = case.must - NO_TIME
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(files, folder, dirs_exist_ok=True)
        environment = {
            **os.environ,
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "PYTHONPATH": str(ROOT / "src"),
            "GLOWPLUG_CACHE_DIR": str(folder / "cache"),
        }
        if "{model}" in case.arguments:  # its twin loads a bundle
            pack = ["-m", "glowplug", "pack", str(folder / "model.keras"), "-o", str(folder / "model.glow")]
            advise_estimates.command_ns(pack, environment)
        stock, twin = commands(case, folder)
        for _ in range(2):  # `glowplug run` learns in its first run
            advise_estimates.command_ns(twin, environment)
        estimate_ns, _ = advise_estimates.promised(rule, stock, environment)
        times: dict[str, list[int]] = {"program_ns": [], "fixed_ns": []}
        for _ in range(pairs):
            times["program_ns"].append(advise_estimates.command_ns(stock, environment))
            times["fixed_ns"].append(advise_estimates.command_ns(twin, environment))
    return {"rule": rule, **advise_estimates.compared(estimate_ns, *map(median, times.values())), **times}


def main() -> None:
    timed = {case.script: case for case in CASES if case.must - NO_TIME}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", default=list(timed), metavar="PROGRAM")
    parser.add_argument("--pairs", type=int, default=3)
    options = parser.parse_args()
    machine.prepare()
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as files:
        prepare(Path(files))
        for name in options.programs:
            results[name] = found = measure(timed[name], options.pairs, Path(files))
            print(f"{name:20} {found['rule']:32} {advise_estimates.line(found)}", flush=True)
    within = sum(each["within_factor_two"] for each in results.values())
    print(f"{within} of {len(results)} within a factor of two")
    document = {"machine": machine.describe(), "pairs": options.pairs, "within_factor_two": within, "programs": results}
    machine.write_result("advice_savings", document, partial=set(results) != set(timed))


if __name__ == "__main__":
    main()
