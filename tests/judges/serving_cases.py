"""TensorFlow Serving's integration test with `glowplug serve` in place of its binary; none of its code is kept here."""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.judges.verdict import Verdict

NAME = "tensorflow-serving"
TEST = "tensorflow_serving/model_servers/tensorflow_model_server_test.py"
NOT_OFFERED = {"test_profiler_service_with_valid_trace_request"}  # the profiler's service
NEEDED = ("tensorflow_serving", "tensorflow", "portpicker", "six", "tf_keras")
_INSIDE = Path(__file__).with_name("inside_serving.py")
_SECONDS = 1800


def judge(checkout: str) -> Verdict:
    """Run all cases of the test of a checkout."""
    if not checkout:
        return Verdict(NAME, None, "no checkout of tensorflow/serving is named: SERVING=…")
    source = Path(checkout).resolve()
    if not (source / TEST).is_file():
        return Verdict(NAME, None, f"{source} has no {TEST}")
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        return Verdict(NAME, None, f"not installed: {', '.join(missing)}")
    with tempfile.TemporaryDirectory(prefix="judge-") as folder:
        found = run(source, Path(folder))
    wrong = sorted(set(found["failed"]) - NOT_OFFERED)
    cases = len(found["passed"]) + len(found["failed"])
    text = f"{len(found['passed'])} of {cases} cases" + (f"; failed: {', '.join(found['failed'])}" if wrong else "")
    return Verdict(NAME, not wrong and cases > 0, text)


def run(source: Path, folder: Path, only: str = "") -> dict[str, list[str]]:
    """Run the test in a tree of links, where the server's place is taken by ours. Returns names of cases."""
    tree = folder / "runfiles" / "tf_serving" / "tensorflow_serving"
    servers = tree / "model_servers"
    servers.mkdir(parents=True)
    (tree / "servables").symlink_to(source / "tensorflow_serving" / "servables")
    program = servers / "tensorflow_model_server"
    command = shlex.join([sys.executable, "-m", "glowplug", "serve", "--pack-cache", str(folder / "packed")])
    program.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    program.chmod(0o755)
    report, scratch = folder / "report.json", folder / "scratch"
    scratch.mkdir()
    environment = {
        **os.environ,
        "TEST_SRCDIR": str(folder / "runfiles"),
        "TEST_TMPDIR": str(scratch),
        "TF_USE_LEGACY_KERAS": "1",  # its models are of Keras 2
        "TF_CPP_MIN_LOG_LEVEL": "2",
    }
    words = [sys.executable, str(_INSIDE), str(source), str(report), *([only] if only else [])]
    with (folder / "log").open("wb") as log:
        subprocess.run(words, env=environment, cwd=folder, stdout=log, stderr=log, check=False, timeout=_SECONDS)
    if not report.exists():
        sys.exit((folder / "log").read_text(errors="replace")[-4000:])
    found: dict[str, list[str]] = json.loads(report.read_text())
    return found
