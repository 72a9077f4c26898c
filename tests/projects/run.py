"""Packs the models of other projects, each in a process of its own: run.py [--times] [--only PART] [CATALOGUE ...]

Writes bench/results/models.json and the table bench/results/models.md. Ends with 1 if a model is wrong or dead, or if
fewer than 95 of 100 are packed for a fast engine. With --times, predictions are measured against stock.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "bench" / "results"
ONE = Path(__file__).with_name("one.py")
# The environments are made by `make models-environments`.
CATALOGUES = {
    "applications": ROOT / ".venv",
    "text": ROOT / ".venv",
    "hub": ROOT / ".venvs" / "models-hub",
    "hugging_face": ROOT / ".venvs" / "models-hf",
    "legacy": ROOT / ".venvs" / "models-legacy",
    "forests": ROOT / ".venvs" / "models-forests",
}
FAST = ("native", "litert")
SECONDS = 900
SHARE = 0.95
HEAD = """# Models of other projects

What `make test-models` has packed so far, by project. Times mean something only if the machine was otherwise idle; the
columns of predictions are filled with `--times`.

"""


def surroundings(python: Path) -> dict[str, str]:
    """The projects of Keras 2 want to be told."""
    legacy = {"TF_USE_LEGACY_KERAS": "1"} if python.parents[1].name in ("models-hf", "models-legacy") else {}
    return {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **legacy}


def ask(python: Path, *arguments: object) -> dict[str, Any]:
    command = [str(python), str(ONE), *map(str, arguments)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=surroundings(python), timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return {"outcome": "crashed", "reason": f"no answer in {SECONDS} s"}
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        last = (done.stderr.splitlines() or [""])[-1]
        return {"outcome": "crashed", "reason": f"exit code {done.returncode}: {last[:200]}"}
    answer: dict[str, Any] = json.loads(lines[-1])
    return answer


def names(python: Path, catalogue: str) -> list[str]:
    done = subprocess.run([str(python), str(ONE), catalogue], capture_output=True, text=True, env=surroundings(python))
    if done.returncode:
        print(f"{catalogue}: {(done.stderr.splitlines() or [''])[-1]}", file=sys.stderr)
    return done.stdout.split("\n")[:-1]


def try_one(python: Path, catalogue: str, name: str, *, times: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="glowplug-models-") as scratch:
        row = ask(python, catalogue, name, scratch)
        if times and (Path(scratch) / "call.pickle").is_file():
            sides = {}
            for side in ("stock", "glowplug"):
                if side == "stock" and "source" in row:
                    continue
                sides[side] = ask(python, "--first", side, scratch)
            row["times"] = sides
    return {"catalogue": catalogue, "project": name.partition(":")[0], "model": name.partition(":")[2], **row}


def table(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| project | model | engine | largest difference | pack | size | first answer, stock and ours | steady ratio |"
    ]
    lines.append("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for row in rows:
        times = row.get("times", {})
        stock, ours = times.get("stock", {}), times.get("glowplug", {})
        both = "first_s" in stock and "first_s" in ours
        note = f" ({row['reason'][:80]})" if row.get("reason") else ""
        lines.append(_line(row, note, stock, ours, both=both))
    return "\n".join(lines)


def _line(row: dict[str, Any], note: str, stock: dict[str, Any], ours: dict[str, Any], *, both: bool) -> str:
    first = f"{stock['first_s']:.2f} s, {ours['first_s']:.2f} s" if both else ""
    steady = f"{ours['steady_s'] / stock['steady_s']:.2f}" if both else ""
    cells = (
        row["project"],
        row["model"],
        row["outcome"] + note.replace("|", "/"),
        f"{row.get('max_rel', 0):.1e}",
        f"{row.get('pack_s', 0):.1f} s",
        f"{row.get('bundle_bytes', 0) / 1e6:.1f} MB",
        first,
        steady,
    )
    return f"| {' | '.join(cells)} |"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("catalogues", nargs="*", choices=[*CATALOGUES, []], default=[])
    parser.add_argument("--times", action="store_true")
    parser.add_argument("--only", default="", help="models whose name contains this")
    options = parser.parse_args()
    rows = []
    for catalogue in options.catalogues or CATALOGUES:
        python = CATALOGUES[catalogue] / "bin" / "python"
        if not python.exists():
            print(f"{catalogue}: there is no {python}", file=sys.stderr)
            continue
        for name in names(python, catalogue):
            if options.only in name:
                row = try_one(python, catalogue, name, times=options.times)
                rows.append(row)
                seconds = row.get("pack_s", 0.0)
                print(f"{name:<50} {row['outcome']:<11} {seconds:6.1f} s  {row.get('reason') or ''}"[:200], flush=True)
                _write(rows)
    built = [row for row in rows if row["outcome"] != "not built"]
    fast = [row for row in built if row["outcome"] in FAST]
    bad = [row for row in built if row["outcome"] in ("crashed", "refused")]
    projects = {row["project"] for row in built}
    print(
        f"{len(fast)} of {len(built)} models of {len(projects)} projects for a fast engine; {len(bad)} dead or refused"
    )
    return 0 if built and not bad and len(fast) >= SHARE * len(built) else 1


def _write(rows: list[dict[str, Any]]) -> None:
    """Replace what was written for these models before, and keep the rest."""
    path = RESULTS / "models.json"
    kept = json.loads(path.read_text())["models"] if path.exists() else []
    new = {(row["project"], row["model"]) for row in rows}
    rows = [row for row in kept if (row["project"], row["model"]) not in new] + rows
    rows = sorted(rows, key=lambda row: (row["project"], row["model"]))
    path.write_text(json.dumps({"models": rows}, indent=1) + "\n")
    path.with_suffix(".md").write_text(HEAD + table(rows) + "\n")


if __name__ == "__main__":
    sys.exit(main())
