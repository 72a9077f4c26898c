"""Programs that look alike and are not: the right result every time, in whatever order they use one cache.

Each run is a child forked from a warm process, as a standby's are; `pitfall_runner` says how. The cases are split into
groups only so that they run side by side.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.tensorflow, pytest.mark.timeout(1800)]

ROOT = Path(__file__).resolve().parents[2]
FILES = ("pitfalls.py", "pitfalls_python.py", "pitfalls_stock.py")
KINDS = {"different", "unstable", "same"}
GROUPS = 8


def _cases():
    """Return the names of the cases without importing TensorFlow."""
    found = []
    for name in FILES:
        tree = ast.parse(Path(__file__).with_name(name).read_text())
        functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
        found += [node.name for node in functions if KINDS & {getattr(mark, "id", "") for mark in node.decorator_list}]
    return found


def _told(names, folder):
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "GLOWPLUG_TRACE_VERIFY": "off"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.train.pitfall_runner", str(folder), *names],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=1700,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def _what_is_wrong(case):
    """Return what a restored trace got wrong, or nothing."""
    runs = case["runs"]
    errors = [run["error"] for run in runs if "error" in run]
    if errors:
        return errors[0]
    if case["kind"] == "UNSTABLE":
        return "restored" if runs[1]["counts"].get("restored") else ""
    if case["kind"] == "SAME":
        right = runs[0]["result"] == runs[1]["result"] and runs[1]["counts"].get("restored")
        return "" if right else f"not restored: {[run['said'] for run in runs]}"
    first, second, *again = runs
    if first["result"] == second["result"]:
        return "the second variant got the result of the first"
    stock = case["stock"]
    if stock is not None and stock["result"] != second["result"]:
        return "the second variant was restored, and is not what stock gives"
    same = all(run["result"] == first["result"] for run in again)
    return "" if same else "the first variant got another result the second time"


def test_there_are_enough_cases():
    assert len(_cases()) == len(set(_cases())) >= 150


@pytest.mark.parametrize("group", range(GROUPS))
def test_no_program_gets_the_trace_of_another(group, tmp_path):
    names = _cases()[group::GROUPS]
    told = _told(names, tmp_path)
    assert [case["name"] for case in told] == names
    wrong = {case["name"]: _what_is_wrong(case) for case in told}
    assert not any(wrong.values()), "\n".join(f"{name}: {text}" for name, text in wrong.items() if text)
