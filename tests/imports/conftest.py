"""Runs a program twice, as it is and under `glowplug run`, in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

TARGETS = Path(__file__).parent / "targets"
NOTICES = ("WARNING: All log messages before absl::InitializeLog()", "I0000 00:00:")

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GLOWPLUG_")}
    return {
        **kept,
        "PYTHONPATH": str(Path(__file__).parents[2] / "src"),
        "GLOWPLUG_CACHE_DIR": str(tmp_path_factory.mktemp("cache")),
        "GLOWPLUG_STANDBY": "0",
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }


@pytest.fixture(scope="session")
def stock(environment: dict[str, str]) -> Run:
    def run(*words: object, **options: object) -> subprocess.CompletedProcess[str]:
        return _run([sys.executable, *map(str, words)], environment, **options)

    return run


@pytest.fixture(scope="session")
def faster(environment: dict[str, str]) -> Run:
    def run(*words: object, **options: object) -> subprocess.CompletedProcess[str]:
        return _run([sys.executable, "-m", "glowplug", "run", *map(str, words)], environment, **options)

    return run


def _run(command, environment, *, variables=None, without=(), **options):
    kept = {name: value for name, value in environment.items() if name not in without}
    done = subprocess.run(
        command, env={**kept, **(variables or {})}, capture_output=True, text=True, timeout=300, **options
    )
    lines = done.stderr.splitlines(keepends=True)
    done.stderr = "".join(line for line in lines if not line.startswith(NOTICES))
    return done
