"""`glowplug budget`: exit 1 when a limit is exceeded."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from glowplug.cli import budget
from glowplug.core.errors import UsageError
from glowplug.core.profile import PHASES, Process, Profile, Runs, Span
from glowplug.core.profile_json import write_profile

SECOND = 1_000_000_000


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    phases = {**dict.fromkeys(PHASES, 0), "import": 3 * SECOND, "user_code": SECOND}
    step = Span(1, None, 7, 7, "first_step", "f", 2 * SECOND, 3 * SECOND, {"kind": "step", "index": 1})
    profile = Profile(
        command=("t.py",),
        exit_code=0,
        wall_ns=4 * SECOND,
        environment={},
        spans=(step,),
        phases=phases,
        processes=(Process(7, 1, ("t.py",), "root", 0, 4 * SECOND, 0, True),),
        runs=Runs((4 * SECOND,) * 3, {"import": (SECOND, 2 * SECOND, 3 * SECOND)}),
    )
    path = tmp_path / "p.json"
    write_profile(profile, path)
    return path


def run(*words: object) -> int:
    parser = argparse.ArgumentParser()
    budget.add_arguments(parser)
    parser.add_argument("--json", action="store_true")
    return budget.run(parser.parse_args([str(word) for word in words]))


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--max", "5s"], 0),
        (["--max", "3.9"], 1),
        (["--max-first-step", "3s"], 0),
        (["--max-first-step", "2999ms"], 1),
        (["--max-phase", "import=2s"], 0),  # the median of the runs
        (["--max-phase", "import=1.9s"], 1),
        (["--max", "1m", "--max-phase", "user_code=1ms"], 1),
    ],
)
def test_limits(saved: Path, options: list[str], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(saved, *options) == code
    assert ("over by" in capsys.readouterr().out) == bool(code)


def test_json(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(saved, "--max", "1s", "--json") == 1
    document = json.loads(capsys.readouterr().out)
    assert document == {
        "good": False,
        "checks": [{"name": "total", "limit_ns": SECOND, "seen_ns": 4 * SECOND, "good": False}],
    }


def test_no_limit_is_a_usage_error(saved: Path) -> None:
    with pytest.raises(UsageError, match="no limit"):
        run(saved)


@pytest.mark.parametrize("text", ["fast", "-1s", "", "s", "nan", "1e999"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        budget.duration(text)


@pytest.mark.parametrize(("text", "expected"), [("2s", 2 * SECOND), ("350ms", 350_000_000), ("1.5", 1.5 * SECOND)])
def test_durations(text: str, expected: float) -> None:
    assert budget.duration(text) == expected


@pytest.mark.parametrize("text", ["import", "nothing=1s", "import=soon"])
def test_what_is_no_phase_limit(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        budget.phase_limit(text)


def settings(folder: Path, text: str) -> None:
    (folder / "pyproject.toml").write_text(f"[tool.glowplug.budget]\n{text}\n")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('max = "5s"', 0),
        ('max = "3.9s"', 1),
        ('max-start = "3s"\nmax-first-step = 3', 0),
        ('max-start = "2.9s"', 1),
        ('max-phase = { import = "1.9s" }', 1),
    ],
)
def test_limits_of_the_project(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, code: int
) -> None:
    settings(tmp_path, text)
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "inner")
    assert run(saved) == code
    assert run(saved, "--max", "1m") == 0  # what is said on the command line is all that counts


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('max = "soon"', "a limit cannot be read"),
        ('maximum = "5s"', "limits are max, max-start"),
        ('max-phase = { lunch = "1s" }', "lunch"),
        ("max = [", "the settings cannot be read"),
        ("max-phase = 3", "max-phase = 3"),
        ("repeat = 0", "once or more"),
        ('max = "5s"\nprogram = 3', "neither a text nor a list"),
        ('program = "\'"', "a limit cannot be read"),
    ],
)
def test_wrong_settings_are_one_line(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    settings(tmp_path, text)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=message) as caught:
        run(saved)
    assert "\n" not in str(caught.value)


def test_a_table_that_is_none(saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool]\nglowplug = 3\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="no table"):
        run(saved)
