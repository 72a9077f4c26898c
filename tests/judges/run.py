"""Everybody else's opinion of `glowplug serve`: run.py [--only JUDGE ...] [--serving DIR] [--h2spec PROGRAM]

    tensorflow-serving   TensorFlow Serving's own integration test (--serving: a checkout of tensorflow/serving)
    h2spec               conformance of HTTP/2 (--h2spec: the program)
    open-inference       the clients of Triton and KServe (`make open-inference-clients` installs them)
    grpc-js              the gRPC of Node.js (installed by npm below .venvs)
    attacks              clients that mean harm, beside one that does not (bench/serve_attacks.py)

A judge that is not there is said to be absent and fails nothing. Ends with 1 if one of those that are there is not
satisfied.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.judges import grpc_js, h2spec, serving_cases
from tests.judges.verdict import Verdict

ROOT = Path(__file__).resolve().parents[2]


def open_inference(args: argparse.Namespace) -> Verdict:
    """Ask the clients of Triton and KServe, through the tests that know what they should see."""
    name = "open-inference"
    if not (ROOT / ".venvs" / "open-inference" / "bin" / "python").exists():
        return Verdict(name, None, "`make open-inference-clients` installs the clients")
    command = [sys.executable, "-m", "pytest", "--no-header", "--durations=0", "tests/serve/test_v2_clients.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    said = [line.strip("= ") for line in done.stdout.splitlines() if "passed" in line or "failed" in line]
    return Verdict(name, done.returncode == 0, said[-1] if said else done.stdout.strip()[-200:])


def attacks(args: argparse.Namespace) -> Verdict:
    """Run the attacks, and read what they did to others."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "attacks.json"
        command = [sys.executable, "bench/serve_attacks.py", "--report", report, "--seconds", str(args.attack_seconds)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if not report.exists():
            return Verdict("attacks", False, done.stderr.strip()[-500:])
        found = json.loads(report.read_text())
    worst = {key: max(row[key] for row in found["attacks"]) for key in ("p99_ms", "healthz_ms", "front_end_mb")}
    missed = [row["attack"] for row in found["attacks"] if row["missed"]]
    text = ", ".join(f"worst {key} {value:.0f}" for key, value in worst.items())
    return Verdict("attacks", not missed, text + (f"; over the bars: {', '.join(missed)}" if missed else ""))


JUDGES: dict[str, Callable[[argparse.Namespace], Verdict]] = {
    serving_cases.NAME: lambda args: serving_cases.judge(args.serving),
    h2spec.NAME: lambda args: h2spec.judge(args.h2spec),
    "open-inference": open_inference,
    grpc_js.NAME: lambda args: grpc_js.judge(),
    "attacks": attacks,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=list(JUDGES), metavar="JUDGE")
    parser.add_argument("--serving", default="", help="a checkout of tensorflow/serving")
    parser.add_argument("--h2spec", default="", help="the program h2spec")
    parser.add_argument("--attack-seconds", type=float, default=5.0, help="how long each attack lasts (5)")
    args = parser.parse_args()
    verdicts = []
    for name in args.only or JUDGES:
        verdict = JUDGES[name](args)
        verdicts.append(verdict)
        print(verdict.line(), flush=True)
    return 1 if any(verdict.good is False for verdict in verdicts) else 0


if __name__ == "__main__":
    sys.exit(main())
