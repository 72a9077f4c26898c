"""Many runs, eight at a time, through one standby: all end as they should, and nothing of them is left over."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

AT_A_TIME = 8
# How programs end, by turns: what they run, their exit code, and what they print after their process's number.
LAYER = "import keras; print(keras.layers.Dense(2, kernel_initializer='ones')(keras.ops.ones((1, 3))).numpy().tolist())"
ENDINGS = (
    ("import numpy; print(numpy.ones(3).sum())", 0, "3.0\n"),
    ("raise SystemExit(7)", 7, ""),
    ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -9, ""),
    ("raise ValueError('meant')", 1, ""),
    ("import subprocess, sys; subprocess.run([sys.executable, '-S', '-c', 'print(5)'])", 0, "5\n"),
    ("import threading; threading.Thread(target=print, args=('late',)).start()", 0, "late\n"),
)
# What a standby may grow by, for each kind of memory, over all runs: the heap of its own small objects, no more. The
# proportional set size is not one of them: it moves when another process that maps the same libraries comes or goes.
MOST_GROWTH_KB = {"Rss": 4096, "Anonymous": 2048}


def test_a_few_runs_leave_nothing_behind(standby, wait_until):
    endure(standby, wait_until, count=24, preload="numpy", endings=ENDINGS)


@pytest.mark.slow
@pytest.mark.tensorflow
def test_two_hundred_runs_leave_nothing_behind(standby, wait_until):
    endure(standby, wait_until, count=200, preload="tensorflow,keras", endings=((LAYER, 0, "[[3.0, 3.0]]\n"), *ENDINGS))


def endure(
    standby: Any, wait_until: Any, *, count: int, preload: str, endings: tuple[tuple[str, int, str], ...]
) -> None:
    def run(number: int) -> tuple[int, int, str]:
        code = f"import os; print(os.getpid(), flush=True)\n{endings[number % len(endings)][0]}"
        done = standby.run("-c", code, preload=preload, timeout=120)
        pid, _, rest = done.stdout.partition("\n")
        assert pid.isdigit(), done.stderr
        return int(pid), done.returncode, rest

    with ThreadPoolExecutor(AT_A_TIME) as pool:
        list(pool.map(run, range(AT_A_TIME)))  # what it keeps for good is there from now on
        server = at_rest(standby, wait_until)
        before = descriptors(server["pid"])
        memory = memory_kb(server["pid"])
        done = list(pool.map(run, range(count)))
    assert [one[1:] for one in done] == [endings[number % len(endings)][1:] for number in range(count)]

    after = at_rest(standby, wait_until)
    assert (after["pid"], after["runs"], after["threads"]) == (server["pid"], [], 1)
    assert after["served"] == AT_A_TIME + count
    assert Path(f"/proc/{server['pid']}/task/{server['pid']}/children").read_text().split() == [str(after["spare"])]
    assert [pid for pid, _, _ in done if state(pid) is not None] == []
    wait_until(lambda: descriptors(server["pid"]) == before)
    grown = {name: value - memory[name] for name, value in memory_kb(server["pid"]).items()}
    assert {name: value for name, value in grown.items() if value > MOST_GROWTH_KB[name]} == {}


def at_rest(standby: Any, wait_until: Any) -> dict[str, Any]:
    """Return the status of the standby once its next child waits."""
    wait_until(lambda: only(standby)["spare"] is not None)
    return only(standby)


def only(standby: Any) -> dict[str, Any]:
    (one,) = json.loads(standby.glowplug("standby", "status", "--json").stdout)["standbys"]
    return dict(one)


def descriptors(pid: int) -> list[str]:
    """Return what a process has open, by kind: sockets and pipes have numbers that differ."""
    return sorted(str(path.readlink()).partition("[")[0] for path in Path(f"/proc/{pid}/fd").iterdir())


def memory_kb(pid: int) -> dict[str, int]:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    found = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines)}
    return {name: found[name] for name in MOST_GROWTH_KB}


def state(pid: int) -> str | None:
    """Return the state of a process, `Z` for a zombie; None where there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return None
