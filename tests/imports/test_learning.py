"""A run that learns is not disturbed by what happens to its cache, and leaves nothing broken when it is killed."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.tensorflow

LEARN = "import tensorflow, keras; print('good')"
REMOVING = """
import os, shutil, threading
def remove():
    while True:
        shutil.rmtree(os.environ["GLOWPLUG_CACHE_DIR"], ignore_errors=True)
threading.Thread(target=remove, daemon=True).start()
"""


def command(code: str) -> list[str]:
    return [sys.executable, "-m", "glowplug", "run", "--no-trace-cache", "-c", code]


def test_the_cache_is_removed_while_a_run_learns(faster, tmp_path):
    done = faster("--no-trace-cache", "-c", REMOVING + LEARN, variables={"GLOWPLUG_CACHE_DIR": str(tmp_path / "cache")})
    assert (done.stdout, done.stderr, done.returncode) == ("good\n", "", 0)


@pytest.mark.parametrize("place", ["/proc/nowhere", "{file}", "/dev/null/x"])
def test_there_is_no_place_for_a_cache(faster, tmp_path, place):
    (tmp_path / "file").touch()
    variables = {"GLOWPLUG_CACHE_DIR": place.format(file=tmp_path / "file")}
    done = faster("--no-trace-cache", "-c", LEARN, variables=variables)
    assert (done.stdout, done.returncode) == ("good\n", 0)
    assert "Traceback" not in done.stderr


def test_no_file_can_be_written(environment, tmp_path):
    """The limit stands for a full disk: each write fails."""
    variables = {**environment, "GLOWPLUG_CACHE_DIR": str(tmp_path / "cache")}
    words = ["sh", "-c", 'ulimit -f 0; exec "$@"', "sh", *command(LEARN)]
    done = subprocess.run(words, env=variables, capture_output=True, text=True, timeout=300)
    assert (done.stdout, done.returncode) == ("good\n", 0), done.stderr
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file() and path.stat().st_size]


@pytest.mark.parametrize("kills", [4, pytest.param(40, marks=pytest.mark.slow)])
def test_a_run_is_killed_while_it_learns(environment, tmp_path, kills):
    def run(folder: Path, kill_after_s: float | None = None) -> float:
        variables = {**environment, "GLOWPLUG_CACHE_DIR": str(folder)}
        began = time.monotonic()
        with subprocess.Popen(command(LEARN), env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            try:
                output, errors = process.communicate(timeout=kill_after_s or 300)
            except subprocess.TimeoutExpired:
                process.kill()
                output, errors = process.communicate()
        if kill_after_s is None:
            assert (output, process.returncode) == (b"good\n", 0)
            assert b"glowplug" not in errors
            assert b"Traceback" not in errors
        return time.monotonic() - began

    took_s = run(tmp_path / "first")
    names = sorted(path.name for path in (tmp_path / "first" / "imports").iterdir())
    folder = tmp_path / "cache"
    for number in range(kills):
        run(folder, took_s * (0.5 + 0.6 * (number + 0.5) / kills))  # what is written is written in the second half
        if number % 10 == 9:
            run(folder)
            for path in (folder / "imports").iterdir():
                path.unlink()
    run(folder)
    run(folder)
    assert sorted(path.name for path in (folder / "imports").iterdir()) == names
