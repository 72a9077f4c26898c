"""`python -m tests.second_look`: a test that fails beside others has a second chance on its own, and only one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import second_look

SECOND_TIME = """
from pathlib import Path

def test_is_right():
    pass

def test_of_a_busy_machine():
    tried = Path("tried")
    before = tried.exists()
    tried.touch()
    assert before
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


def test_what_fails_once_passes_and_is_named(folder, capfd):
    (folder / "test_some.py").write_text(SECOND_TIME)
    assert second_look.main([], folder=folder) == 0
    said = capfd.readouterr().out
    assert "on their own: test_some.py::test_of_a_busy_machine\n" in said
    assert "1 failed, 1 passed" in said


def test_in_turn(folder, capfd):
    (folder / "test_some.py").write_text(SECOND_TIME)
    assert second_look.main(["--in-turn", "test_some.py"], folder=folder) == 0
    said = capfd.readouterr().out
    assert "on their own: test_some.py::test_of_a_busy_machine\n" in said
    assert "workers" not in said


def test_what_fails_twice_has_failed(folder, capfd):
    (folder / "test_some.py").write_text("def test_wrong():\n    assert False\n")
    assert second_look.main([], folder=folder) == 1
    assert capfd.readouterr().out.count("1 failed") == 2


def test_what_is_skipped_the_second_time_has_failed(folder, capfd):
    skipping = SECOND_TIME.replace("    assert before", "    if before:\n        pytest.skip()\n    assert before")
    (folder / "test_some.py").write_text(f"import pytest\n{skipping}")
    assert second_look.main([], folder=folder) == 1
    assert "skipped on their own" in capfd.readouterr().out


def test_many_failures_are_not_the_machine(folder, capfd):
    (folder / "test_some.py").write_text(
        "".join(f"def test_{number}():\n    assert False\n" for number in range(second_look.AGAIN_AT_MOST + 1))
    )
    assert second_look.main([], folder=folder) == 1
    assert "on their own" not in capfd.readouterr().out


def test_a_file_that_cannot_be_read_is_not_run_again(folder):
    (folder / "test_some.py").write_text("raise ValueError")
    assert second_look.main([], folder=folder) != 0
