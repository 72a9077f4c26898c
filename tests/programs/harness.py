"""Runs programs of keras.io under stock Keras and twice under `glowplug run`, and compares what they give.

    python -m tests.programs.harness CHECKOUT [NAME ...] [--stock] [--keep DIR]

CHECKOUT is a checkout of keras-team/keras-io. Each run is a fresh process in an empty folder; seeds are set and
operations are deterministic, so that the logs of every batch and the weights at the end must agree to the bit. Writes
bench/results/programs.json when all programs were run.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .edits import OutdatedEditError, edited
from .table import PROGRAMS, Program

ROOT = Path(__file__).parents[2]
INSIDE = Path(__file__).parent / "inside"
LIMIT_S = 400
AGAIN = 4  # runs of stock where Glowplug's results differ
SIDES = ("stock", "first", "second")


@dataclass(frozen=True, slots=True)
class Run:
    """What one process left behind."""

    status: int
    seconds: float
    record: dict[str, Any]
    counts: dict[str, int]
    last_lines: list[str]

    @property
    def results(self) -> tuple[Any, ...]:
        return self.status, self.record.get("logs"), self.record.get("weights"), self.record.get("finished")

    def said(self, text: str) -> list[str]:
        return [note for note in self.record.get("notes", ()) if text in note]


def run(side: str, program: Path, folder: Path) -> Run:
    scratch, kept = folder / "scratch", folder / f"{side}.json"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    environment = {
        **os.environ,
        "KERAS_BACKEND": "tensorflow",
        "KERAS_HOME": str(scratch / "keras"),
        "MPLBACKEND": "Agg",
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "GLOWPLUG_CACHE_DIR": str(folder / "cache"),
        "PYTHONPATH": str(INSIDE),
        "PROGRAM_RECORD": str(kept),
    }
    told = folder / f"{side}.told.json"
    told.unlink(missing_ok=True)
    launcher = [] if side == "stock" else ["-m", "glowplug", "run", "--no-standby", "--json-file", str(told)]
    began = time.monotonic()
    with (folder / f"{side}.out").open("w+", encoding="utf-8", errors="replace") as output:
        try:
            status = subprocess.run(
                [sys.executable, *launcher, str(program)],
                cwd=scratch,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=LIMIT_S,
            ).returncode
        except subprocess.TimeoutExpired:
            status = -9
    took = time.monotonic() - began
    lines = (folder / f"{side}.out").read_text(encoding="utf-8", errors="replace").splitlines()
    record = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    return Run(status, round(took, 1), record, _counts(told), lines[-6:])


def _counts(told: Path) -> dict[str, int]:
    """Return what the trace cache did, if the program came to its end."""
    text = told.read_text(encoding="utf-8") if told.exists() else ""
    lines = json.loads(text)["run"] if text else []
    found = [one["figures"] for one in lines if one["part"] == "trace cache"]
    return {name: number for one in found for name, number in one.items() if name != "enable_ns"}


def compare(name: str, program: Program, checkout: Path, folder: Path, sides: tuple[str, ...]) -> dict[str, Any]:
    """Run one program on each side and say how they compare."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(folder / "cache", ignore_errors=True)
    try:
        text = edited((checkout / name).read_text(encoding="utf-8"), program.edits, determinism=program.determinism)
    except (OSError, OutdatedEditError) as error:
        return {"outcome": f"not run: {error}"}
    path = folder / "program.py"
    runs: dict[str, Run] = {}
    known = folder / "stock_run.json"
    if known.exists() and path.exists() and path.read_text(encoding="utf-8") == text:
        runs["stock"] = Run(**json.loads(known.read_text(encoding="utf-8")))
    path.write_text(text, encoding="utf-8")
    for side in sides:
        if side not in runs:
            runs[side] = run(side, path, folder)
            if side == "stock":
                known.write_text(json.dumps(asdict(runs[side])), encoding="utf-8")
        if not runs["stock"].record.get("finished"):
            return {"outcome": f"not run: stock failed: {' | '.join(runs['stock'].last_lines)}"}
    document: dict[str, Any] = {
        "seconds": {side: each.seconds for side, each in runs.items()},
        "exit": {side: each.status for side, each in runs.items()},
        "steps_compared": len(runs["stock"].record.get("logs", ())),
    }
    if "second" not in runs:
        return {"outcome": "ended", **document}
    second = runs["second"]
    steps = second.said("the train step of")
    traced = [note for note in steps if note.endswith(": traced")]
    restored = [note for note in steps if note.endswith(": restored")]
    outcome = _outcome(runs)
    if outcome.endswith("differs") and _stock_varies(runs["stock"], path, folder):
        outcome = "stock differs from itself"
    document |= {
        "outcome": outcome,
        "trained_by_keras": bool(restored or traced or runs["first"].said("the train step of")),
        "train_step_restored": bool(restored) and not traced,
        "counts": {side: runs[side].counts for side in ("first", "second")},
        "notes": sorted({note.removeprefix("glowplug: ") for note in second.record.get("notes", ()) if _matters(note)}),
    }
    return document


def _outcome(runs: dict[str, Run]) -> str:
    for side in ("first", "second"):
        if runs[side].status != runs["stock"].status:
            return f"the {side} run failed: {' | '.join(runs[side].last_lines)}"
        if runs[side].results != runs["stock"].results:
            return f"the {side} run differs"
    return "identical"


def _stock_varies(stock: Run, program: Path, folder: Path) -> bool:
    """Whether stock Keras gives other results when it is run again: some of Grappler's work is left to chance."""
    return any(run("stock", program, folder).results != stock.results for _ in range(AGAIN))


def _matters(note: str) -> bool:
    return not note.endswith((": restored", ": traced"))


def line(name: str, one: dict[str, Any]) -> str:
    seconds = " ".join(f"{took:5.1f}" for took in one.get("seconds", {}).values())
    restored = "restored" if one.get("train_step_restored") else "traced" if one.get("trained_by_keras") else "-"
    return f"{name:<70} {seconds:<18} {restored:<9} {one['outcome']}"


def summary(results: dict[str, dict[str, Any]]) -> dict[str, int]:
    trained = [one for one in results.values() if one.get("trained_by_keras")]
    return {
        "programs": len(results),
        "identical": sum(one["outcome"] == "identical" for one in results.values()),
        "stock_differs_from_itself": sum(one["outcome"] == "stock differs from itself" for one in results.values()),
        "trained_by_keras": len(trained),
        "train_step_restored": sum(one["train_step_restored"] for one in trained),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help="programs whose path contains it (default: all)")
    parser.add_argument("--stock", action="store_true", help="only see whether they run under stock Keras")
    parser.add_argument(
        "--keep", type=Path, help="keep programs and outputs in this folder, and take stock's from there"
    )
    args = parser.parse_args()
    wanted = {path: one for path, one in PROGRAMS.items() if not args.names or any(name in path for name in args.names)}
    results: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        for path, program in wanted.items():
            folder = (args.keep or Path(temporary)).absolute() / path.replace("/", "_").removesuffix(".py")
            results[path] = compare(path, program, args.checkout, folder, SIDES[:1] if args.stock else SIDES)
            print(line(path, results[path]), flush=True)
            for note in results[path].get("notes", ()):
                print(f"    {note}", flush=True)
    if args.stock:
        return 0
    print(json.dumps(summary(results)))
    if not args.names:
        sys.path.insert(0, str(ROOT / "bench"))
        import machine

        document = {"machine": machine.describe(), "summary": summary(results), "programs": results}
        machine.write_result("programs", document, partial=False)
    return 0 if all(one["outcome"] in ("identical", "stock differs from itself") for one in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
