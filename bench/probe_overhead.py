"""What the probe costs and explains: a target with and without it, in turn, in fresh processes.

    probe_overhead.py NAME [--rounds 7] [--append] -- SCRIPT [ARGUMENTS]

CPU time is user and system time of the target with all its children, from wait4. `profiler_cpu_s` is what the
watching process spent while the target ran (the shim's own cost is part of the target's CPU time). The script prints
one JSON line on stdout whose `spans_s` are its own marks: each is held against the profile. Results are kept by NAME
in bench/results/probe_overhead.json; a long target can be measured in several sittings with --append.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parents[1]
RESULT = Path(__file__).parent / "results" / "probe_overhead.json"
sys.path.insert(0, str(ROOT / "src"))

import machine  # noqa: E402

from glowplug.core.profile import Profile  # noqa: E402
from glowplug.probe.run import profile_target  # noqa: E402


def run_plain(command: list[str]) -> dict[str, Any]:
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{command} failed with exit code {process.returncode}")
    wall = time.perf_counter() - began
    return {
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "wall_s": wall,
        "minor_faults": usage.ru_minflt,
        "marks": marks_of(output),
    }


def run_profiled(command: list[str]) -> tuple[dict[str, Any], Profile]:
    """Profile with the target's output in a file, so that nobody has to read a pipe meanwhile."""
    saved = [os.dup(1), os.dup(2)]
    with tempfile.TemporaryFile() as output, Path(os.devnull).open("wb") as nowhere:
        os.dup2(output.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
        before = resource.getrusage(resource.RUSAGE_SELF)
        began = time.perf_counter()
        try:
            profile = profile_target(["--", *command])
        finally:
            for number, copy in zip((1, 2), saved, strict=True):
                os.dup2(copy, number)
                os.close(copy)
        after = resource.getrusage(resource.RUSAGE_SELF)
        total = time.perf_counter() - began
        output.seek(0)
        marks = marks_of(output.read())
    if profile.exit_code:
        sys.exit(f"{command} failed with exit code {profile.exit_code}")
    unexplained = profile.phases["unaccounted"] + profile.phases["user_code"]
    return {
        "cpu_s": profile.environment["cpu_ns"] / 1e9,
        "wall_s": profile.wall_ns / 1e9,
        "minor_faults": profile.processes[0].attrs["minor_faults"],
        "profiler_cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "merge_s": total - profile.wall_ns / 1e9,
        "unexplained_share": unexplained / profile.wall_ns,
        "marks": marks,
        "agreement": agreement(profile, marks),
        "phases_s": {name: value / 1e9 for name, value in profile.phases.items() if value},
        "spans": len(profile.spans),
    }, profile


def marks_of(output: bytes) -> dict[str, float]:
    for line in reversed(output.splitlines()):
        if line.startswith(b"{"):
            return dict(json.loads(line).get("spans_s", {}))
    return {}


def agreement(profile: Profile, marks: dict[str, float]) -> dict[str, dict[str, float]]:
    """Return, for each mark of the script that the profile also knows, both durations in seconds."""
    known: dict[str, float] = {}
    by_id = {span.id: span for span in profile.spans}
    outermost = [
        span for span in profile.of_kind("module") if span.parent is not None and by_id[span.parent].kind == "main"
    ]
    loads = list(profile.of_kind("load"))
    steps = list(profile.of_kind("step"))
    fits = list(profile.of_kind("fit"))
    limit = loads[0].start_ns if loads else fits[0].start_ns if fits else profile.wall_ns
    known["import"] = sum(span.duration_ns for span in outermost if span.end_ns <= limit) / 1e9
    if loads:
        known["load"] = loads[0].duration_ns / 1e9
    if fits and "first" in marks:
        known["first"] = fits[0].duration_ns / 1e9
    elif steps and "first" in marks:
        known["first"] = steps[0].duration_ns / 1e9
    train = [span for span in steps if span.attrs.get("mode") == "train"]
    for span in train[:3]:
        index = span.attrs["index"]
        begun = fits[0].start_ns if index == 1 else train[index - 2].end_ns
        known[f"step{index}"] = (span.end_ns - begun) / 1e9
    return {name: {"script_s": marks[name], "profile_s": known[name]} for name in known if name in marks}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--append", action="store_true", help="add rounds to those that NAME has already")
    words = sys.argv[1:]
    split = words.index("--") if "--" in words else len(words)
    args = parser.parse_args(words[:split])
    command = [sys.executable, *words[split + 1 :]]
    if len(command) == 1:
        parser.error("name a script after --")
    machine.prepare()
    run_plain(command)
    document = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    earlier = document.get(args.name, {}) if args.append else {}
    plain, profiled = list(earlier.get("plain", [])), list(earlier.get("profiled", []))
    versions: dict[str, str] = {}
    for number in range(args.rounds):
        for side in ("plain", "profiled") if number % 2 == 0 else ("profiled", "plain"):
            if side == "plain":
                plain.append(run_plain(command))
            else:
                result, profile = run_profiled(command)
                profiled.append(result)
                versions = dict(profile.environment["versions"])
        print(f"  {plain[-1]['cpu_s']:.2f} {profiled[-1]['cpu_s']:.2f} s CPU", file=sys.stderr, flush=True)
    before, after = median(run["cpu_s"] for run in plain), median(run["cpu_s"] for run in profiled)
    watching = median(run["profiler_cpu_s"] for run in profiled)
    differences: dict[str, list[float]] = {}
    for run in profiled:
        for name, pair in run["agreement"].items():
            differences.setdefault(name, []).append(pair["profile_s"] / pair["script_s"] - 1)
    summary = {
        "target_cpu_overhead": after / before - 1,
        "with_profiler_cpu_overhead": (after + watching) / before - 1,
        "unexplained_share": median(run["unexplained_share"] for run in profiled),
        "largest_unexplained_share": max(run["unexplained_share"] for run in profiled),
        "profile_against_marks": {name: median(values) for name, values in differences.items()},
        "plain_cpu_s": before,
        "profiled_cpu_s": after,
        "plain_wall_s": median(run["wall_s"] for run in plain),
        "profiled_wall_s": median(run["wall_s"] for run in profiled),
        "plain_minor_faults": median(run["minor_faults"] for run in plain),
        "profiled_minor_faults": median(run["minor_faults"] for run in profiled),
    }
    shown = [Path(word).name if "/" in word else word for word in command[1:]]
    document[args.name] = {
        "command": shown,
        "rounds": len(plain),
        "machine": machine.describe(),
        "versions": versions,
        "summary": summary,
        "plain": plain,
        "profiled": profiled,
    }
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps(document, indent=1) + "\n")
    print(json.dumps(summary, indent=1))


if __name__ == "__main__":
    main()
