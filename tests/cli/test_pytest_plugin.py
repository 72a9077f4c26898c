"""The pytest plugin, in projects of its own: one line for what is over, and for what is wrong."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

FIXTURE = """
def test_start(glowplug_budget):
    profile = glowplug_budget(["program.py"], {limits})
    assert profile.exit_code == 0
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    if "glowplug" not in {each.name for each in entry_points(group="pytest11")}:
        pytest.skip("Glowplug is not installed here: pytest finds its plugin by the installed package")
    (tmp_path / "program.py").write_text("import json\n")
    (tmp_path / "test_own.py").write_text("def test_own():\n    pass\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


def run(project: Path, *words: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", "-q", *words]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def budget(project: Path, text: str) -> None:
    (project / "pyproject.toml").write_text(f"[tool.glowplug.budget]\n{text}\n")


def test_is_there_only_when_it_is_asked_for(project: Path) -> None:
    budget(project, 'program = "program.py"\nmax = "1ms"')
    assert run(project)[0] == 0
    code, out = run(project, "--glowplug-budget")
    assert code == 1
    assert "1 failed, 1 passed" in out
    assert "the start of program.py is over its budget" in out
    assert "over by" in out
    assert "Nothing was found that would make this start shorter." in out
    assert "Traceback" not in out


def test_within_the_budget(project: Path) -> None:
    budget(project, 'program = ["program.py"]\nrepeat = 2\nmax = "1m"\nmax-phase = { import = "1m" }')
    code, out = run(project, "--glowplug-budget")
    assert code == 0, out
    assert "2 passed" in out


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('max = "1m"', "has nothing to profile"),
        ('program = "program.py"', "there is no limit in [tool.glowplug.budget]"),
        ('program = "program.py"\nmax = "soon"', "'soon' is no duration"),
        ('program = "missing.py"\nmax = "1m"', "missing.py"),
        ('program = "broken.py"\nmax = "1m"', "ended with exit code 3"),
    ],
)
def test_what_is_wrong_is_one_line(project: Path, table: str, said: str) -> None:
    (project / "broken.py").write_text("raise SystemExit(3)\n")
    budget(project, table)
    code, out = run(project, "--glowplug-budget")
    assert code != 0
    assert said in out
    assert "Traceback" not in out


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ('max="1m", max_phase={"import": "1m"}', ""),
        ('max="1ms"', "is over its budget"),
        ("", "there is no limit"),
        ('maximum="1s"', "there is no limit 'maximum'"),
        ('max="soon"', "is no duration"),
    ],
)
def test_the_fixture(project: Path, limits: str, said: str) -> None:
    (project / "test_own.py").write_text(FIXTURE.format(limits=limits))
    code, out = run(project)
    assert (code == 0) == (said == ""), out
    assert said in out
