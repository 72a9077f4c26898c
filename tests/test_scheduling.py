"""How `make test` gives tests to workers, with small files. Workers are real; what is looked at is who ran what."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# Each test adds a line with its process and its name to a file that all share.
CONFTEST = """
import os, pytest
@pytest.fixture(autouse=True)
def log(request):
    with open("log", "a") as file:
        file.write(f"{os.getpid()} {request.node.name}\\n")
"""
PASSES = "def test_{}(): pass\n"
DIES = "import os, signal\ndef test_{}(): os.kill(os.getpid(), signal.SIGILL)\n"
WAITS = """
import pathlib, time
def test_it():
    try:
        open("{0}.fifo", "w").close()
        time.sleep(600)
    finally:
        pathlib.Path("{0}.cleaned").touch()
"""


@pytest.fixture
def start(tmp_path):
    pytest.importorskip("xdist")

    def begin(files: dict[str, str], *arguments: str) -> subprocess.Popen[str]:
        (tmp_path / "tests" / "train").mkdir(parents=True)
        (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -q -p xdist -p tests.scheduling\n")
        (tmp_path / "tests" / "conftest.py").write_text(CONFTEST)
        for name, text in files.items():
            (tmp_path / "tests" / name).write_text(text)
        return subprocess.Popen(
            [sys.executable, "-m", "pytest", "--dist", "loadgroup", *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    return begin


def ran(folder: Path) -> dict[str, list[str]]:
    """Return the names of the tests that each process ran."""
    processes: dict[str, list[str]] = {}
    for line in (folder / "log").read_text().splitlines():
        pid, name = line.split()
        processes.setdefault(pid, []).append(name)
    return processes


@pytest.mark.parametrize("at_once", ["1", "2"])
def test_a_process_runs_whole_files_of_one_kind_in_order(start, tmp_path, at_once):
    files = {
        f"{folder}test_{kind}{number}.py": "".join(PASSES.format(f"{kind}{number}_{n}") for n in range(3))
        for folder, kind in (("train/", "train"), ("", "other"))
        for number in range(4)
    }
    process = start(files, "-n", at_once)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    assert re.fullmatch(r"24 passed in .*", output.splitlines()[-1])
    processes = ran(tmp_path)
    assert sum(map(len, processes.values())) == 24
    for names in processes.values():
        assert len({"train" in name for name in names}) == 1
        for at in range(0, len(names), 3):
            assert names[at : at + 3] == [f"{names[at][:-1]}{n}" for n in range(3)]


def test_a_crash_costs_one_test(start, tmp_path):
    dies = PASSES.format("one") + DIES.format("two") + PASSES.format("three") + PASSES.format("four")
    others = {"test_first.py": PASSES.format("five"), "test_second.py": DIES.format("six") + PASSES.format("seven")}
    process = start({"train/test_dies.py": dies, **others}, "-n", "2")
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 1
    assert re.fullmatch(r"2 failed, 5 passed in .*", output.splitlines()[-1]), output
    assert re.search(r"worker 'gw\d' crashed while running 'tests/train/test_dies.py::test_two'", output)
    names = sorted(name for names in ran(tmp_path).values() for name in names)
    assert names == sorted(f"test_{name}" for name in ("one", "two", "three", "four", "five", "six", "seven"))


def test_a_run_without_tests_ends(start):
    process = start({"test_other.py": PASSES.format("one")}, "-n", "1", "-k", "nothing")
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 5, output


def test_an_interrupt_ends_all_and_they_clean_up(start, tmp_path):
    for name in ("first", "second"):
        os.mkfifo(tmp_path / f"{name}.fifo")
    files = {"train/test_first.py": WAITS.format("first"), "test_second.py": WAITS.format("second")}
    process = start(files, "-n", "2")
    for name in ("first", "second"):
        (tmp_path / f"{name}.fifo").read_text()  # both are in the middle of a test
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    output, _ = process.communicate(timeout=120)  # ends when all of them have closed the pipe
    assert process.returncode == 2, output
    assert {path.name for path in tmp_path.glob("*.cleaned")} == {"first.cleaned", "second.cleaned"}
