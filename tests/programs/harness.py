"""Runs programs of keras.io under stock Keras and twice under `glowplug run`, and compares what they give.

    python -m tests.programs.harness CHECKOUT [NAME ...] [--resume] [--stock] [--keep DIR]
    python -m tests.programs.harness CHECKOUT --so-far

CHECKOUT is a checkout of keras-team/keras-io. Each run is a fresh process in an empty folder; seeds are set and
operations are deterministic, so that the logs of every batch and the weights at the end must agree to the bit. Writes
bench/results/programs.json when all programs were run by one state of the code, in one call or in several.
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
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .edits import OutdatedEditError, edited
from .rows import Rows, digest, kept_rows, write_results
from .table import PROGRAMS, Program

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


def texts_of(programs: Iterable[tuple[str, Program]], checkout: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Return the edited texts by the programs' names, and what is wrong with those that cannot be edited."""
    texts, wrong = {}, {}
    for name, program in programs:
        try:
            source = (checkout / name).read_text(encoding="utf-8")
            texts[name] = edited(source, program.edits, determinism=program.determinism, fewer=program.fewer)
        except (OSError, OutdatedEditError) as error:
            wrong[name] = str(error)
    return texts, wrong


def compare(text: str, folder: Path, sides: tuple[str, ...]) -> dict[str, Any]:
    """Run one program on each side and say how they compare."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(folder / "cache", ignore_errors=True)
    path = folder / "program.py"
    runs: dict[str, Run] = {}
    known = folder / "stock_run.json"
    if known.exists() and path.exists() and path.read_text(encoding="utf-8") == text:
        earlier = Run(**json.loads(known.read_text(encoding="utf-8")))
        if earlier.record.get("finished"):
            runs["stock"] = earlier
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
        if wrong := runs[side].said("differs from a fresh one"):  # found at the end of a run: its exit code is 0
            return f"the {side} run restored what it should not: {wrong[0]}"
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


def ran(one: dict[str, Any]) -> bool:
    """Whether a program came to its end under stock Keras: only then is there something to compare with."""
    return "exit" in one


def document_of(rows: Rows, texts: dict[str, str], *, so_far: bool = False) -> dict[str, Any] | None:
    """Return what the results file says, once every program of the table has a row of this state of the code; `so_far`
    with the names of those that have none.
    """
    results = rows.of({name: digest(texts[name]) for name in PROGRAMS if name in texts})
    missing = [name for name in PROGRAMS if name not in results]
    if missing and not so_far:
        return None
    return {"summary": summary(results), **({"not_run": missing} if missing else {}), "programs": results}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help="programs whose path contains it (default: all)")
    parser.add_argument("--resume", action="store_true", help="leave out those that were run by this state of the code")
    parser.add_argument(
        "--so-far", action="store_true", help="write the results file now, naming what has not been run"
    )
    parser.add_argument("--stock", action="store_true", help="only see whether they run under stock Keras")
    parser.add_argument(
        "--keep", type=Path, help="keep programs and outputs in this folder, and take stock's from there"
    )
    args = parser.parse_args()
    texts, wrong = texts_of(PROGRAMS.items(), args.checkout)
    rows = kept_rows("programs")
    results: dict[str, dict[str, Any]] = {}
    wanted = [] if args.so_far else [each for each in PROGRAMS if not args.names or any(n in each for n in args.names)]
    with tempfile.TemporaryDirectory() as temporary:
        for path in wanted:
            folder = (args.keep or Path(temporary)).absolute() / path.replace("/", "_").removesuffix(".py")
            if path in wrong:
                results[path] = {"outcome": f"not run: {wrong[path]}"}
            elif args.resume and (known := rows.get(path, digest(texts[path]))) is not None:
                results[path] = known
                continue
            else:
                results[path] = compare(texts[path], folder, SIDES[:1] if args.stock else SIDES)
                if ran(results[path]) and not args.stock and rows.are_of_now():
                    rows.put(path, digest(texts[path]), results[path])
            print(line(path, results[path]), flush=True)
            for note in results[path].get("notes", ()):
                print(f"    {note}", flush=True)
    if args.stock:
        return 0 if all(map(ran, results.values())) else 1
    if not args.so_far:
        print(json.dumps(summary(results)))
    document = document_of(rows, texts, so_far=args.so_far)
    if document is not None:
        write_results("programs", rows, document)
    return 0 if all(one["outcome"] in ("identical", "stock differs from itself") for one in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
