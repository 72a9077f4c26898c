"""Runs Keras' own tests, as its wheel has them, under stock Keras and twice under `train.enable()`, and compares.

    python -m tests.programs.keras_tests [FOLDER ...] [--resume]
    python -m tests.programs.keras_tests --so-far

FOLDER is one of `trainers`, `models`, `callbacks`, `optimizers` and `saving` of keras.src, or a file below one. Each
test must end as it ends under stock Keras. Writes bench/results/keras_tests.json when all folders were run by one state
of the code, in one call or in several.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from .harness import SIDES
from .rows import ROOT, Rows, digest, kept_rows, write_results

FOLDERS = ("trainers", "models", "callbacks", "optimizers", "saving")
LIMIT_S = 1800


def outcomes(side: str, tests: list[Path], folder: Path) -> dict[str, str]:
    """Run tests in a fresh process and return how each ended, by its name."""
    report = folder / f"{side}.xml"
    plugin = [] if side == "stock" else ["-p", "tests.programs.enabling"]
    environment = {
        **os.environ,
        "KERAS_BACKEND": "tensorflow",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "PYTHONPATH": str(ROOT),
        "TRACE_CACHE": str(folder / "cache"),
    }
    # Some files import jax or torch, which need not be there: then they fail to be imported on every side.
    options = [
        "-q",
        "-p",
        "no:cacheprovider",
        "--continue-on-collection-errors",
        "-o",
        "junit_family=xunit1",  # which names the file
        "--rootdir",
        str(folder),
        "-c",
        os.devnull,
    ]
    with (folder / f"{side}.out").open("w", encoding="utf-8") as output:
        subprocess.run(
            [sys.executable, "-m", "pytest", *options, *plugin, f"--junitxml={report}", *map(str, tests)],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=LIMIT_S,
        )
    if not report.exists():
        return {"the run": f"ended without a report: {(folder / f'{side}.out').read_text(encoding='utf-8')[-500:]}"}
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):
        ended = [each.tag for each in case if each.tag in ("failure", "error", "skipped")]
        name = ".".join(filter(None, (str(case.get("classname")).rpartition(".")[2], case.get("name"))))
        file = Path(case.get("file") or "").name  # of a file that cannot be imported there is only the name
        found[": ".join(filter(None, (file, name)))] = ended[0] if ended else "passed"
    return found


def compare(tests: list[Path], folder: Path) -> dict[str, Any]:
    """Run tests on all sides and return the numbers, and every test that ended otherwise than under stock Keras."""
    ended = {side: outcomes(side, tests, folder) for side in SIDES}
    stock = ended["stock"]
    names = sorted({name for each in ended.values() for name in each})
    return {
        "tests": len(stock),
        "failed_under_stock": sorted(name for name, how in stock.items() if how in ("failure", "error")),
        "different": {
            name: {side: ended[side].get(name, "not run") for side in SIDES}
            for name in names
            if len({ended[side].get(name, "not run") for side in SIDES}) > 1
        },
    }


def summary(folders: dict[str, Any]) -> dict[str, int]:
    return {
        "tests": sum(one["tests"] for one in folders.values()),
        "failed_under_stock": sum(len(one["failed_under_stock"]) for one in folders.values()),
        "different": sum(len(one["different"]) for one in folders.values()),
    }


def document_of(rows: Rows, *, so_far: bool = False) -> dict[str, Any] | None:
    """Return what the results file says, once every folder has a row of this state of the code; `so_far` with the names
    of those that have none.
    """
    folders = rows.of({name: digest(name) for name in FOLDERS})
    missing = [name for name in FOLDERS if name not in folders]
    if missing and not so_far:
        return None
    return {"summary": summary(folders), **({"not_run": missing} if missing else {}), "folders": folders}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", metavar="FOLDER", help=f"of {', '.join(FOLDERS)} (default: all)")
    parser.add_argument("--resume", action="store_true", help="leave out those that were run by this state of the code")
    parser.add_argument(
        "--so-far", action="store_true", help="write the results file now, naming what has not been run"
    )
    args = parser.parse_args()
    spec = find_spec("keras")
    assert spec is not None
    assert spec.origin is not None
    source = Path(spec.origin).parent / "src"
    rows = kept_rows("keras_tests")
    results: dict[str, Any] = {}
    for name in () if args.so_far else args.folders or FOLDERS:
        known = rows.get(name, digest(name)) if args.resume else None
        if known is None:
            place = source / name
            tests = sorted(place.rglob("*_test.py")) if place.is_dir() else [place]
            with tempfile.TemporaryDirectory() as folder:
                known = compare(tests, Path(folder))
            if rows.are_of_now():
                rows.put(name, digest(name), known)
            print(name, json.dumps(known, indent=1), flush=True)
        results[name] = known
    document = document_of(rows, so_far=args.so_far)
    if document is not None:
        write_results("keras_tests", rows, document)
    return 1 if any(one["different"] for one in results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
