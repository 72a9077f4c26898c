"""What the tests of pitfalls share: the names of the cases of a file, and what a run of them came to."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
KINDS = {"different", "unstable", "same"}


def names_in(file: str) -> list[str]:
    """Return the names of the cases in a file without importing TensorFlow."""
    tree = ast.parse(Path(__file__).with_name(file).read_text())
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return [node.name for node in functions if KINDS & {getattr(mark, "id", "") for mark in node.decorator_list}]


def check(names: list[str], folder: Path) -> None:
    """Run cases in children of one warm process; fail with all that was restored wrongly."""
    told = _told(names, folder)
    assert [case["name"] for case in told] == names
    wrong = {case["name"]: _what_is_wrong(case) for case in told}
    assert not any(wrong.values()), "\n".join(f"{name}: {text}" for name, text in wrong.items() if text)


def _told(names: list[str], folder: Path) -> list[dict[str, Any]]:
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


def _what_is_wrong(case: dict[str, Any]) -> str:
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
