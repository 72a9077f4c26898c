"""Killed at any moment, nothing is lost and nothing is left over after the next run."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

SUFFIXES = {".sock", ".lock", ".log", ".turn"}


def of(standby: Any) -> list[int]:
    """Return the processes that were started with this standby's directory, zombies and ourselves excepted."""
    wanted, found = f"GLOWPLUG_STANDBY_DIR={standby.directory}".encode(), []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def kill_all(pids: list[int]) -> None:
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def begin(standby: Any, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "glowplug", *words],
        env=standby.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def kill_starts(standby: Any, wait_until: Any, count: int) -> None:
    chance = random.Random(5)
    for _ in range(count):
        process = begin(standby, "standby", "start", "--preload", "numpy")
        time.sleep(chance.uniform(0.0, 1.2))
        kill_all([process.pid] if chance.random() < 0.3 else of(standby))
        process.wait(20)
    done = standby.run("-c", "import os; print(os.getppid())")
    assert done.returncode == 0, done.stderr
    # Those whose starter alone was killed are standbys like any other; all share one name.
    assert standby.pids() == [int(done.stdout)]
    names = {path.stem for path in standby.directory.iterdir()}
    assert len(names) == 1
    assert "stopped" in standby.glowplug("standby", "stop").stdout
    wait_until(lambda: list(standby.directory.iterdir()) == [])
    wait_until(lambda: of(standby) == [])


def kill_runs(standby: Any, wait_until: Any, count: int) -> None:
    chance = random.Random(6)
    for _ in range(count):
        process = standby.begin("-c", "import time; time.sleep(60)")
        time.sleep(chance.uniform(0.0, 1.0))
        victims = of(standby)
        kill_all([process.pid] if chance.random() < 0.3 else victims)
        process.kill()
        process.communicate()
        wait_until(lambda: all(pid in standby.pids() + spares(standby) for pid in of(standby)))
    assert standby.run("-c", "print(1)").stdout == "1\n"
    assert len({path.stem for path in standby.directory.iterdir()}) == 1
    standby.glowplug("standby", "stop")
    wait_until(lambda: of(standby) == [])
    assert list(standby.directory.iterdir()) == []


def spares(standby: Any) -> list[int]:
    found = []
    for pid in standby.pids():
        try:
            found += [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        except OSError:
            continue
    return found


def test_a_few_starts(standby, wait_until):
    kill_starts(standby, wait_until, 4)


def test_a_few_runs(standby, wait_until):
    kill_runs(standby, wait_until, 4)


@pytest.mark.slow
def test_forty_starts(standby, wait_until):
    kill_starts(standby, wait_until, 40)


@pytest.mark.slow
def test_forty_runs(standby, wait_until):
    kill_runs(standby, wait_until, 40)


def test_what_a_killed_standby_left_is_gone_after_a_run_that_wants_none(standby):
    standby.run("-c", "pass")
    kill_all(of(standby))
    assert {path.suffix for path in standby.directory.iterdir()} >= {".sock", ".lock"}
    done = standby.run("-c", "print(1)", start=False)
    assert done.stderr == "not run: no standby runs\n"
    assert list(standby.directory.iterdir()) == []
