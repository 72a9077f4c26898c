"""The script behind `make test`, with small parts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests import side_by_side

CALLER = """
import sys
from pathlib import Path
from tests import side_by_side
parts = {"one": ["one"], "two": ["two.py"], "rest": ["."]}
sys.exit(side_by_side.run(parts, sys.argv[2:], 2, Path(sys.argv[1])))
"""


def write(folder: Path, **files: str) -> None:
    (folder / "one").mkdir()
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -q\npython_files = *.py\n")
    for name, text in files.items():
        (folder / f"{name.replace('__', '/')}.py").write_text(text)


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(Path(side_by_side.__file__).parents[1])}
    return subprocess.Popen(
        [sys.executable, "-c", CALLER, str(folder), *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_every_file_runs_once_and_all_outcomes_are_told(tmp_path):
    passes = "def test_it(): pass"
    write(tmp_path, one__first=passes, two="def test_it(): assert not 'this is shown'", three=passes, four=passes)
    process = start(tmp_path)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    one, rest, two = sorted(line.strip() for line in output.splitlines()[-3:])
    assert one.startswith("one passed: 1 passed in ")
    assert rest.startswith("rest passed: 2 passed in ")
    assert two.startswith("two FAILED (1): 1 failed in ")
    assert "def test_it(): assert not 'this is shown'" in output
    assert output.count("[100%]") == 6  # as progress, and in the whole output


def test_parts_without_chosen_tests_pass(tmp_path):
    write(tmp_path, one__first="def test_it(): pass", two="def test_other(): pass")
    process = start(tmp_path, "-k", "other")
    assert process.communicate(timeout=60)[0].count("passed: ") == 3
    assert process.returncode == 0


def test_an_interrupt_stops_all_and_they_clean_up(tmp_path):
    waits = """
import pathlib, time
def test_it():
    try:
        open("{0}.fifo", "w").close()
        time.sleep(600)
    finally:
        pathlib.Path("{0}.cleaned").touch()
"""
    for name in ("first", "second"):
        os.mkfifo(tmp_path / f"{name}.fifo")
    write(tmp_path, one__first=waits.format("first"), two=waits.format("second"), three="def test_it(): pass")
    process = start(tmp_path)
    for name in ("first", "second"):
        (tmp_path / f"{name}.fifo").read_text()  # both are in the middle of a test
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode != 0
    assert output.count("KeyboardInterrupt") >= 2
    assert {path.name for path in tmp_path.glob("*.cleaned")} == {"first.cleaned", "second.cleaned"}
    assert not (tmp_path / "rest.log").exists()
