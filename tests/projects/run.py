"""Packs the models of other projects, each in a process of its own.

    run.py [--times] [--together] [--again] [--only PART] [CATALOGUE ...]

Writes bench/results/models.json and the table bench/results/models.md after each model, and goes on where it was
stopped: a model that was packed is left alone; with --again, only one that this state of the code has packed. With
--times, first and later predictions are measured against stock TensorFlow in Python, and compared with its answers;
rows that lack them are made again. With --together the models of a catalogue are packed in one process as long as it
lives, and without the trials that choose between native and LiteRT; stock's process is then a fork of one that has
imported TensorFlow: sooner. Ends with 1 if a model is wrong or dead, or if fewer than 95 of 100 are packed for a fast
engine.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import psutil
import timing

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "bench" / "results"
ONE = Path(__file__).with_name("one.py")
# The environments are made by `make models-environments`.
CATALOGUES = {
    "text": ROOT / ".venv",
    "hub": ROOT / ".venvs" / "models-hub",
    "legacy": ROOT / ".venvs" / "models-legacy",
    "forests": ROOT / ".venvs" / "models-forests",
    "hugging_face": ROOT / ".venvs" / "models-hf",
    "applications": ROOT / ".venv",
}
FAST = ("native", "litert")
PACKED = (*FAST, "savedmodel")
SECONDS = 1800
SHARE = 0.95
BUSY = 0.1
ENOUGH_BYTES = 4 << 30  # a process that packed several models gets a successor
APART = (
    1e-4  # from stock's answer: `pack` itself allows a tenth of it, against the same graph in TensorFlow's C library
)
ROUNDINGS = 10  # each operation of a model rounds, not its inputs alone
HEAD = """# Models of other projects

What `make test-models` has packed, by project: each small or with small inputs, with random weights. "Largest
difference" is to the source, in parts of the largest value, over all calls that `pack` compared. The columns of times
are filled with `--times`: the first answer of a fresh process, stock TensorFlow's in Python and ours, imports included;
and the ratio of later calls, ours to stock's, which two processes made in turns. A star marks times that were taken
beside other work: such ratios are rough, such seconds say little. With `--together`, packing is timed without the
import of TensorFlow and without the trials that choose between native and LiteRT, and stock's first answer ("after
import") without its import, which ours never needs; ours is the whole process in any case.

"""

Row = dict[str, Any]


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


def try_one(python: Path, catalogue: str, name: str, *, times: bool) -> Row:
    with tempfile.TemporaryDirectory(prefix="glowplug-models-") as scratch:
        row = ask(python, catalogue, name, scratch, *(["--call"] if times else []))
        return _timed(row, python, Path(scratch)) if times else row


def _timed(row: Row, python: Path, folder: Path, forks: timing.Forks | None = None) -> Row:
    if not (folder / "call.pickle").is_file():
        return row
    return {**row, "times": timing.times([str(python), str(ONE)], folder, surroundings(python), forks)}


class Together:
    """A process that packs one model after the other. One that dies with a model is followed by another."""

    def __init__(self, python: Path, catalogue: str, *, times: bool) -> None:
        self._python, self._catalogue, self._times = python, catalogue, times
        self._forks = timing.Forks([str(python), str(ONE)], surroundings(python))
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, name: str) -> Row:
        with tempfile.TemporaryDirectory(prefix="glowplug-models-") as scratch:
            row = self._pack(name, scratch)
            return _timed(row, self._python, Path(scratch), self._forks) if self._times else row

    def _pack(self, name: str, scratch: str) -> Row:
        if self._process is None:
            self._process = subprocess.Popen(
                [str(self._python), str(ONE), "--together", self._catalogue, *(["--call"] if self._times else [])],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=surroundings(self._python),
            )
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{name}\t{scratch}\n".encode())
        process.stdin.flush()
        late = threading.Timer(SECONDS, process.kill)
        late.start()
        try:
            for line in process.stdout:
                if line.startswith(b"row: "):
                    row: Row = json.loads(line.removeprefix(b"row: "))
                    if psutil.Process(process.pid).memory_info().rss > ENOUGH_BYTES:
                        self._end()
                    return row
        finally:
            late.cancel()
        self._process = None
        return {"outcome": "crashed", "reason": f"exit code {process.wait()}"}

    def close(self) -> None:
        self._forks.close()
        self._end()

    def _end(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            self._process.wait()
        self._process = None


def code() -> str:
    """Return which state of the code made a row: a digest of the sources that have to do with packing and loading."""
    digest = hashlib.sha256()
    for folder in ("convert", "loader", "runtime", "bundle"):
        for path in sorted((ROOT / "src" / "glowplug" / folder).rglob("*.py")):
            digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def table(rows: list[Row]) -> str:
    lines = [
        "| project | model | engine | largest difference | pack | size | first answer, stock and ours | steady ratio |"
    ]
    lines.append("| --- | --- | --- | --- | --- | --- | --- | --- |")
    return "\n".join([*lines, *map(_line, rows)])


def _line(row: Row) -> str:
    times = row.get("times", {})
    stock, ours = times.get("stock", {}), times.get("glowplug", {})
    both = "first_s" in stock and "first_s" in ours
    note = f" ({row['reason'][:120]})" if row.get("reason") else ""
    packed = row["outcome"] in PACKED
    star = " *" if times.get("others", 0.0) > BUSY else ""
    after = " after import" if times.get("after_import") else ""
    cells = (
        row["project"],
        row["model"],
        row["outcome"] + note.replace("|", "/"),
        f"{row['max_rel']:.1e}" if packed else "",
        f"{row['pack_s']:.1f} s{star}" if times else "",
        f"{row['bundle_bytes'] / 1e6:.1f} MB" if packed else "",
        f"{stock['first_s']:.2f} s{after}, {ours['first_s']:.2f} s{star}" if both else _alone(times),
        f"{times['steady_ratio']:.2f}{star}" if both else "",
    )
    return f"| {' | '.join(cells)} |"


def _alone(times: dict[str, Any]) -> str:
    """Say what is known where stock TensorFlow has no answer in Python."""
    return f"stock fails, {times['glowplug']['first_s']:.2f} s" if "first_s" in times.get("glowplug", {}) else ""


def _summary(rows: list[Row]) -> tuple[str, bool]:
    """Return one sentence about all rows, and whether they are good enough."""
    built = [row for row in rows if row["outcome"] != "not built"]
    fast = [row for row in built if row["outcome"] in FAST]
    dead = [row for row in built if row["outcome"] not in PACKED or _died(row)]
    wrong = [row for row in built if _is_wrong(row)]
    states = {row.get("code") for row in built}
    fallen_back = sum(row["outcome"] == "savedmodel" for row in built)
    text = (
        f"{len(built)} models of {len({row['project'] for row in built})} projects: {len(fast)} for a fast engine, "
        f"{fallen_back} for `savedmodel`, {len(dead)} refused or dead, {len(wrong)} wrong; "
        f"{len(rows) - len(built)} could not be built; made by {len(states)} states of the code."
    )
    return text, bool(built) and not dead and not wrong and len(fast) >= SHARE * len(built)


def _died(row: Row) -> bool:
    return "times" in row and "first_s" not in row["times"]["glowplug"]


def _is_wrong(row: Row) -> bool:
    """Stock TensorFlow itself answers otherwise to inputs that differ in the last digit, some models far otherwise."""
    times = row.get("times", {})
    allowed = max(APART, ROUNDINGS * times.get("stock", {}).get("rounding", 0.0))
    return not row.get("random") and times.get("glowplug", {}).get("to_stock", 0.0) > allowed


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("catalogues", nargs="*", choices=[*CATALOGUES, []], default=[])
    parser.add_argument("--times", action="store_true")
    parser.add_argument("--together", action="store_true", help="models of a catalogue share a process")
    parser.add_argument("--again", action="store_true", help="also what another state of the code has packed")
    parser.add_argument("--only", default="", help="models whose name contains this")
    options = parser.parse_args()
    rows = _read()
    for catalogue in options.catalogues or CATALOGUES:
        python = CATALOGUES[catalogue] / "bin" / "python"
        if not python.exists():
            print(f"{catalogue}: there is no {python}", file=sys.stderr)
            continue
        worker = Together(python, catalogue, times=options.times)
        for name in names(python, catalogue):
            if options.only not in name or _is_done(rows.get(name), times=options.times, again=options.again):
                continue
            row = worker.ask(name) if options.together else try_one(python, catalogue, name, times=options.times)
            project, _, model = name.partition(":")
            rows[name] = {"catalogue": catalogue, "project": project, "model": model, "code": code(), **row}
            seconds = row.get("pack_s", 0.0)
            print(f"{name:<50} {row['outcome']:<11} {seconds:6.1f} s  {row.get('reason') or ''}"[:200], flush=True)
            _write(rows)
        worker.close()
    text, good = _summary(list(rows.values()))
    print(text)
    return 0 if good else 1


def _is_done(row: Row | None, *, times: bool, again: bool) -> bool:
    """What was refused or could not be built is tried again, since it is quickly said."""
    if row is None or (again and row.get("code") != code()):
        return False
    return row["outcome"] in PACKED and not _died(row) and ("times" in row or not times)


def _read() -> dict[str, Row]:
    path = RESULTS / "models.json"
    rows = json.loads(path.read_text())["models"] if path.exists() else []
    return {f"{row['project']}:{row['model']}": row for row in rows}


def _write(rows: dict[str, Row]) -> None:
    kept = sorted(rows.values(), key=lambda row: (row["project"], row["model"]))
    path = RESULTS / "models.json"
    for target, text in (
        (path, json.dumps({"models": kept}, indent=1) + "\n"),
        (path.with_suffix(".md"), HEAD + _summary(kept)[0] + "\n\n" + table(kept) + "\n"),
    ):
        unfinished = target.with_name(f".{target.name}")
        unfinished.write_text(text)
        unfinished.replace(target)


if __name__ == "__main__":
    sys.exit(main())
