"""Compare what each rule estimates with what the fixed twin of its script really saves.

    python bench/advise_estimates.py [RULE ...] [--pairs N] [--output FILE]

For each rule: the symptom script once under the probe gives the estimate; then symptom and twin run N times in turn in
fresh processes without the probe, timed from launch to exit, page cache as found (warm after the first). The real
saving is the difference of the medians. Results are merged into the output file by rule, so that rules can be measured
a few at a time. Run it on an idle machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))
SCRIPTS = ROOT / "tests" / "advise" / "scripts"
# Rules whose estimate is time, and whose twin does the same work without the symptom.
TIMED = (
    "compile_inside_load",
    "connection_per_read",
    "constant_in_graph",
    "graph_grows_each_round",
    "graph_optimization_on_first_step",
    "import_dominates_start",
    "import_in_each_worker",
    "imported_never_used",
    "initialized_then_overwritten",
    "initializer_built_each_round",
    "load_per_request",
    "predicts_with_stock_tensorflow",
    "retrace_by_python_value",
    "retrace_by_shape",
    "retrace_for_each_model",
    "saver_per_restore",
    "session_per_round",
    "slow_function_library",
    "slow_initializer",
    "two_traces_on_first_step",
    "waiting_before_first_step",
    "xla_compile_not_repaid",
    "xla_compiles_in_each_process",
)


def environment_of(script: Path, folder: Path) -> dict[str, str]:
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    extra = script.with_name("environment.json")
    if extra.exists():
        settings = json.loads(extra.read_text()).get(script.stem, {})
        environment |= {name: value.format(folder=folder) for name, value in settings.items()}
    return environment


def command_ns(words: list[str], environment: dict[str, str]) -> int:
    """Run Python with these words; return how long that took, from launch to exit."""
    started = time.monotonic_ns()
    subprocess.run([sys.executable, *words], env=environment, check=True, capture_output=True)
    return time.monotonic_ns() - started


def run_ns(script: Path, folder: Path) -> int:
    return command_ns([str(script), str(folder)], environment_of(script, folder))


def promised(rule: str, words: list[str], environment: dict[str, str]) -> tuple[int, int]:
    """Return the time and bytes that the rule claims, profiling in a process of its own to keep its output apart."""
    code = (
        "import json, sys; from pathlib import Path; from glowplug.advise.engine import advise;"
        "from glowplug.probe.run import profile_target;"
        "found = [f for f in advise(profile_target(sys.argv[3:])) if f.rule == sys.argv[1]];"
        "Path(sys.argv[2]).write_text(json.dumps([[f.saves_ns, f.saves_bytes] for f in found]))"
    )
    with tempfile.NamedTemporaryFile(suffix=".json") as answer:
        command_ns(["-c", code, rule, answer.name, *words], {**environment, "PYTHONPATH": str(ROOT / "src")})
        found = json.loads(Path(answer.name).read_text())
    if not found:
        raise SystemExit(f"{rule} does not fire on {words[0]}")
    return found[0][0], found[0][1]


def compared(estimate_ns: int, symptom_ns: float, fixed_ns: float) -> dict[str, Any]:
    """Return an estimate beside what was really saved."""
    real_ns = round(symptom_ns - fixed_ns)
    ratio = estimate_ns / real_ns if real_ns > 0 else None
    within = ratio is not None and 0.5 <= ratio <= 2
    return {"estimate_ns": estimate_ns, "real_ns": real_ns, "ratio": ratio, "within_factor_two": within}


def line(found: Mapping[str, Any]) -> str:
    """Return what was found, for people."""
    ratio = "-" if found["ratio"] is None else f"{found['ratio']:.2f}"
    return f"estimate {found['estimate_ns'] / 1e9:6.2f} s  real {found['real_ns'] / 1e9:6.2f} s  {ratio}"


def measure(rule: str, pairs: int) -> dict[str, Any]:
    symptom, fixed = SCRIPTS / rule / "symptom.py", SCRIPTS / rule / "fixed.py"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if (symptom.with_name("prepare.py")).exists():
            run_ns(symptom.with_name("prepare.py"), folder)
        run_ns(fixed, folder)  # fills caches that the twin keeps on disk, and the page cache
        saves_ns, saves_bytes = promised(rule, [str(symptom), name], environment_of(symptom, folder))
        times: dict[str, list[int]] = {"symptom_ns": [], "fixed_ns": []}
        for _ in range(pairs):
            times["symptom_ns"].append(run_ns(symptom, folder))
            times["fixed_ns"].append(run_ns(fixed, folder))
    return {"estimate_bytes": saves_bytes, **compared(saves_ns, *map(median, times.values())), **times}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rules", nargs="*", default=TIMED)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--output", type=Path, default=ROOT / "bench/results/advise_estimates.json")
    options = parser.parse_args()
    kept = json.loads(options.output.read_text()) if options.output.exists() else {"rules": {}}
    for rule in options.rules:
        kept["rules"][rule] = found = measure(rule, options.pairs)
        print(f"{rule:36} {line(found)}", flush=True)
        kept["machine"] = {
            "platform": platform.platform(),
            "python": platform.python_version(),
            "cpus": len(os.sched_getaffinity(0)),
            "page_cache": "warm",
            "pairs": options.pairs,
        }
        kept["rules"] = dict(sorted(kept["rules"].items()))
        kept["within_factor_two"] = sum(bool(each["within_factor_two"]) for each in kept["rules"].values())
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
