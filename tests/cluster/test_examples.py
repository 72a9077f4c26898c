"""The examples for training on a cluster, on one: as they are, in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.nodes import running
from tests.components.relay import Relay

pytestmark = [pytest.mark.cluster, pytest.mark.tensorflow, pytest.mark.slow]

EXAMPLES = Path(__file__).parents[2] / "examples" / "cluster"


def run(name: str, folder: Path) -> Any:
    """Run an example on a cluster of two nodes, whose workers share a trace cache; return what it prints."""
    own = {"GLOWPLUG_CACHE_DIR": str(folder / "traces"), "PYTHONPATH": str(EXAMPLES)}
    with running(folder / "cluster", 2, **own) as nodes:
        done = subprocess.run(
            [sys.executable, str(EXAMPLES / name), "--address", nodes.address],
            env={**os.environ, **own},
            capture_output=True,
            text=True,
            timeout=400,
        )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_the_first_task_traces_for_all(tmp_path: Path, origin: Relay) -> None:
    first, *rest = run("tasks.py", tmp_path)
    assert len({one["pid"] for one in (first, *rest)}) == 4
    assert first["traced"] >= 1
    assert [one["restored"] for one in rest] == [1, 1, 1]
    assert {one["loss"] for one in rest} == {first["loss"]}


def test_ray_train_runs_it_on_four_workers(tmp_path: Path, origin: Relay) -> None:
    assert run("ray_train.py", tmp_path)["loss"] > 0


def test_ray_tune_keeps_one_graph(tmp_path: Path, origin: Relay) -> None:
    found = run("ray_tune.py", tmp_path)
    assert (found["trials"], found["errors"]) == (6, 0)
    assert found["processes"] == 1
    assert found["traces"] == 1  # in all of them
