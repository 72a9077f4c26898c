"""Process start to the end of training step one: stock Keras, an empty cache, and the second run, in turn.

    train_start.py [MODEL ...] [--rounds 3] [--script FILE]

The script is ../shared/baseline/train_stock.py beside this repository, unchanged: Glowplug is enabled in front of it.
`refused` is scripts/train_refused.py, whose step is traced in every run: what is found there is the optimised graph.
The clock starts in the parent just before the process is made. Every process is fresh, the page cache warm. A last
round with TensorFlow's deterministic operations compares the losses of all steps.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import machine

SCRIPT = machine.ROOT.parent / "shared" / "baseline" / "train_stock.py"
RUNNER = Path(__file__).parent / "scripts" / "train_start.py"
REFUSED = Path(__file__).parent / "scripts" / "train_refused.py"
MODELS = ("resnet50", "encoder", "refused")
SIDES = ("stock", "first", "second")
STOCK_AGAIN = 5
WANTED = {
    "restored": {"first": {"traced": 1, "stored": 1, "restored": 0}, "second": {"restored": 1, "traced": 0}},
    "refused": {"first": {"refused": 1, "optimised": 0}, "second": {"refused": 1, "optimised": 1}},
}


def start(script: Path, model: str, side: str, cache: Path, *options: str) -> dict[str, Any]:
    """Run one process and return its durations in nanoseconds, from just before it was made, and its losses."""
    if side == "first":
        shutil.rmtree(cache, ignore_errors=True)
    enabled = [] if side == "stock" else ["--cache", cache]
    began = time.perf_counter_ns()
    told = json.loads(
        machine.run_quietly([RUNNER, REFUSED if model == "refused" else script, model, *enabled, *options])
    )
    counts, wanted = told.get("counts", {}), WANTED["refused" if model == "refused" else "restored"].get(side, {})
    if any(counts.get(name, 0) != number for name, number in wanted.items()):
        sys.exit(f"{model}, {side}: {counts} instead of {wanted}")
    at = told["marks_ns"]  # `enable()` imports Keras, so that little is left of the script's own import
    return {
        "to_step1_ns": at["step1"] - began,
        "import_ns": at["import"] - began,
        "build_ns": at["compile"] - at["import"],
        "step1_ns": at["step1"] - at["compile"],
        "step2_ns": at["step2"] - at["step1"],
        "step3_ns": at["step3"] - at["step2"],
        **(told["restore_spans_ns"] if side == "second" else {}),
        "losses": told["losses"],
    }


def measure(script: Path, model: str, rounds: int, folder: Path) -> dict[str, Any]:
    """Return the raw rounds of one model and what they come to."""
    cache = folder / model
    start(script, model, "first", cache)  # every file has been read once
    raw: dict[str, list[dict[str, Any]]] = {side: [] for side in SIDES}
    for number in range(rounds):
        order = SIDES if number % 2 == 0 else ("first", "second", "stock")
        for side in order:
            one = start(script, model, side, cache)
            raw[side].append(one)
            print(f"  {model} {side} {one['to_step1_ns'] / 1e9:.2f} s", file=sys.stderr, flush=True)
    return summary(raw)


def summary(raw: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    medians = {
        side: {key: int(median(one[key] for one in runs)) for key in runs[0] if key != "losses"}
        for side, runs in raw.items()
    }
    stock = medians["stock"]
    restored = medians["second"]
    return {
        "median_ns": medians,
        "lowest_ns": {side: min(one["to_step1_ns"] for one in runs) for side, runs in raw.items()},
        "highest_ns": {side: max(one["to_step1_ns"] for one in runs) for side, runs in raw.items()},
        "first_times_sooner": round(stock["to_step1_ns"] / medians["first"]["to_step1_ns"], 2),
        "second_times_sooner": round(stock["to_step1_ns"] / restored["to_step1_ns"], 2),
        "second_paired_times_sooner": [
            round(one["to_step1_ns"] / two["to_step1_ns"], 2)
            for one, two in zip(raw["stock"], raw["second"], strict=True)
        ],
        # All that restoring and the first run cost beyond a steady step; what it needs was built before.
        "restore_beyond_a_step_ns": _restore_and_run(restored) - restored["step3_ns"],
        "losses": compared(raw),
        "rounds": raw,
    }


def compared(raw: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Return whether the losses agree to the bit in step one and in all, and the largest relative difference."""
    losses = [one["losses"] for runs in raw.values() for one in runs]
    differences = [abs(a - b) / abs(b) for each in losses for a, b in zip(each, losses[0], strict=True)]
    return {
        "step1_identical": all(each[0] == losses[0][0] for each in losses),
        "all_identical": all(each == losses[0] for each in losses),
        "largest_relative_difference": max(differences),
        "stock_largest_relative_difference": max(
            abs(a - b) / abs(b) for one in raw["stock"] for a, b in zip(one["losses"], losses[0], strict=True)
        ),
    }


def determinism(script: Path, model: str, folder: Path) -> dict[str, Any]:
    """Return how the losses compare with deterministic operations.

    Stock is run again where one differs: large convolutions differ between two stock runs with them, too.
    """
    cache = folder / f"{model}-determinism"
    raw = {side: [start(script, model, side, cache, "--determinism")] for side in SIDES}
    ours = {tuple(one["losses"]) for side in ("first", "second") for one in raw[side]}
    stock = {tuple(one["losses"]) for one in raw["stock"]}
    for _ in range(STOCK_AGAIN):
        if ours <= stock:  # stock gives it, too
            break
        raw["stock"].append(start(script, model, "stock", cache, "--determinism"))
        stock.add(tuple(raw["stock"][-1]["losses"]))
    return {**compared(raw), "stock_runs": len(raw["stock"]), "stock_results": len(stock), "others": len(ours - stock)}


def table(results: dict[str, Any]) -> str:
    lines = ["model      stock     empty cache       second run        step two: stock, second"]
    for name, one in results.items():
        stock, first, second = (one["median_ns"][side] for side in SIDES)
        losses, same = one["losses"], _sameness(one.get("determinism"))
        lines += [
            f"{name:<10} {_s(stock['to_step1_ns'])}  {_s(first['to_step1_ns'])} {one['first_times_sooner']:5.2f}x"
            f"  {_s(second['to_step1_ns'])} {one['second_times_sooner']:5.2f}x"
            f"  {_s(stock['step2_ns'])} {_s(second['step2_ns'])}",
            f"  losses: step one identical: {losses['step1_identical']}; all within "
            f"{losses['largest_relative_difference']:.1e}; with deterministic operations identical: {same}",
            f"  restore and first run {_s(_restore_and_run(second))}, which is a steady step and "
            f"{_s(one['restore_beyond_a_step_ns'])}",
        ]
    return "\n".join(lines)


def _sameness(compared_losses: dict[str, Any] | None) -> str:
    if compared_losses is None:
        return "not compared"
    if compared_losses["all_identical"] or "stock_runs" not in compared_losses:
        return str(compared_losses["all_identical"])
    return (
        f"{compared_losses['stock_results']} results in {compared_losses['stock_runs']} stock runs, "
        f"{compared_losses['others']} others under Glowplug"
    )


def _restore_and_run(times: dict[str, int]) -> int:
    """Return what it took from the key to the end of step one; a refused step is looked up and traced in that time."""
    if "restore_and_run_ns" in times:  # of a result that an older version of this script wrote
        return times["restore_and_run_ns"]
    return times["restore_ns"] + times["first_run_ns"] if "first_run_ns" in times else times["step1_ns"]


def _s(duration_ns: int) -> str:
    return f"{duration_ns / 1e9:6.2f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(MODELS)} (default: all)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-determinism", action="store_true", help="leave out the deterministic round")
    parser.add_argument("--script", type=Path, default=SCRIPT)
    args = parser.parse_args()
    models = args.models or MODELS
    if set(models) != {"refused"} and not args.script.exists():
        sys.exit(f"{args.script} is missing: give the training script with --script")
    machine.prepare()
    results = kept()
    with tempfile.TemporaryDirectory() as folder:
        for model in models:
            results[model] = {"machine": machine.describe(), **measure(args.script, model, args.rounds, Path(folder))}
            if not args.no_determinism:
                results[model]["determinism"] = determinism(args.script, model, Path(folder))
            machine.write_result("train_start", {"models": results}, partial=False)  # after each: it takes long
    print(table(results))


def kept() -> dict[str, Any]:
    """Return the results of earlier runs: a run may measure one model and keep the other's."""
    path = machine.RESULTS / "train_start.json"
    return dict(json.loads(path.read_text(encoding="utf-8"))["models"]) if path.exists() else {}


if __name__ == "__main__":
    main()
