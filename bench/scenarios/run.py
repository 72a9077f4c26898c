"""`glowplug bench` on every scenario, into one result: run.py [NAME ...] [--rounds 7] [--cold] [--html FOLDER]

README.md's first table comes from the result. Peers are measured where `make peers` has installed them. Models and what
is converted are kept in the cache (GLOWPLUG_BENCH_CACHE); `--prepare` makes all of it and measures nothing. `--resume`
adds to what was measured so far and is in no result yet.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import machine
import sources

PREPARED = machine.CACHE / "prepared"


def bench(name: str, *words: str | Path) -> dict[str, Any]:
    """Return the document of `glowplug bench` for one scenario."""
    command = [sys.executable, "-m", "glowplug", "bench", sources.path_of(name), "--json", *words]
    command += ["--environments", machine.ENVIRONMENTS, "--keep", PREPARED]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def line(name: str, document: dict[str, Any]) -> str:
    """Return the first predictions of all contestants in one line."""
    parts = []
    for row in document["rows"]:
        firsts = sorted(row["first_ns"])
        text = f"{firsts[len(firsts) // 2] / 1e9:.2f} s" if firsts else row["outcome"]
        parts.append(f"{row['name']}{'*' if row['name'] == document['chosen'] else ''} {text}")
    return f"{name:<16} {', '.join(parts)}"


def resumed() -> dict[str, Any]:
    """Return what a run that was not whole has measured."""
    path = machine.CACHE / "results" / "scenarios.json"
    found: dict[str, Any] = json.loads(path.read_text())["scenarios"] if path.exists() else {}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "scenarios", nargs="*", metavar="NAME", help=f"of {', '.join(sources.SCENARIOS)} (default: all)"
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--cold", action="store_true", help="measure with a dropped page cache, too (root)")
    parser.add_argument("--html", metavar="FOLDER", help="write a page for each scenario")
    parser.add_argument("--resume", action="store_true", help="add to what the last run, which was not whole, measured")
    parser.add_argument("--prepare", action="store_true", help="only build and convert the models")
    args = parser.parse_args()
    machine.prepare()
    results = resumed() if args.resume else {}
    for name in args.scenarios or sources.SCENARIOS:
        if args.prepare:
            print(line(name, bench(name, "--only-prepare")), flush=True)
            continue
        words: list[str | Path] = ["--repeat", str(args.rounds)]
        words += ["--cold"] if args.cold else []
        if args.html:
            Path(args.html).mkdir(parents=True, exist_ok=True)
            words += ["--html", f"{args.html}/{name}.html", "--force"]
        results[name] = bench(name, *words)
        print(line(name, results[name]), flush=True)
        whole = len(results) == len(sources.SCENARIOS)
        rounds = sorted({len(row["first_ns"]) for one in results.values() for row in one["rows"] if row["first_ns"]})
        said = " to ".join(map(str, sorted({rounds[0], rounds[-1]})))
        document = {"machine": machine.describe(), "rounds": said, "scenarios": results}
        machine.write_result("scenarios", document, partial=not whole)  # after each: it takes long


if __name__ == "__main__":
    main()
