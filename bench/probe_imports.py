"""Does the import tree of the probe agree with `-X importtime`? The ten modules with the longest self time.

    probe_imports.py [--rounds 5] [--import tensorflow]

`python -X importtime` runs under the probe, so that both clocks see the same import. Two processes would not do:
whichever module the garbage collector happens to run in looks slow. Medians over fresh processes. The result is in
bench/results/probe_imports.json.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

import machine  # noqa: E402

from glowplug.core.profile import Profile  # noqa: E402
from glowplug.probe.run import profile_target  # noqa: E402

SLOWEST = 10
Times = dict[str, tuple[float, float]]  # of each module: own and cumulative seconds


def parse(text: str) -> Times:
    """Read what `-X importtime` wrote. Of a name that comes twice the first counts, as in the profile."""
    times: Times = {}
    for line in text.splitlines():
        if line.startswith("import time:") and line.count("|") == 2 and "cumulative" not in line:
            own, total, name = line.removeprefix("import time:").split("|")
            times.setdefault(name.strip(), (int(own) / 1e6, int(total) / 1e6))
    return times


def times_of(profile: Profile) -> Times:
    """Return the same from a profile."""
    times: Times = {}
    for span in profile.of_kind("module"):
        if "error" not in span.attrs:
            times.setdefault(span.name, (span.attrs["self_ns"] / 1e9, span.duration_ns / 1e9))
    return times


@contextlib.contextmanager
def errors_in(path: Path) -> Iterator[None]:
    """Send this process's stderr, and that of the targets it starts, to a file."""
    saved = os.dup(2)
    with path.open("wb") as stream:
        os.dup2(stream.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(saved, 2)
            os.close(saved)


def profile_imports(command: list[str]) -> tuple[Times, str]:
    """Return the probe's times of a command and what it wrote to stderr."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "stderr")
        with errors_in(log):
            profile = profile_target(["--", *command])
        if profile.exit_code:
            sys.exit(f"{command} failed with exit code {profile.exit_code}")
        return times_of(profile), log.read_text(errors="replace")


def compare(ours: Times, theirs: Times) -> dict[str, Any]:
    """Hold both against each other on the modules that are slowest in `theirs`."""
    table = {}
    for name in sorted(theirs, key=lambda name: -theirs[name][0])[:SLOWEST]:
        own, total = ours[name]
        table[name] = {
            "importtime_self_s": theirs[name][0],
            "profile_self_s": own,
            "importtime_total_s": theirs[name][1],
            "profile_total_s": total,
            "self_difference": own / theirs[name][0] - 1,
            "total_difference": total / theirs[name][1] - 1,
        }
    return {
        "largest_self_difference": max(abs(row["self_difference"]) for row in table.values()),
        "largest_total_difference": max(abs(row["total_difference"]) for row in table.values()),
        "modules": table,
    }


def medians(runs: list[Times]) -> Times:
    """Return the median times of the modules that every run has."""
    names = set.intersection(*(set(run) for run in runs))
    return {name: (median(run[name][0] for run in runs), median(run[name][1] for run in runs)) for name in names}


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--import", dest="module", default="tensorflow")
    args = parser.parse_args()
    machine.prepare()
    command = [sys.executable, "-X", "importtime", "-c", f"import {args.module}"]
    runs = []
    for number in range(args.rounds):
        ours, text = profile_imports(command)
        runs.append((ours, parse(text)))
        print(f"  round {number + 1} of {args.rounds}", file=sys.stderr, flush=True)
    document = {
        "machine": machine.describe(),
        "import": args.module,
        "rounds": args.rounds,
        **compare(medians([ours for ours, _ in runs]), medians([theirs for _, theirs in runs])),
    }
    machine.write_result("probe_imports", document, partial=False)
    print(
        f"self within {document['largest_self_difference']:.1%},"
        f" cumulative within {document['largest_total_difference']:.1%}"
    )


if __name__ == "__main__":
    main()
