"""A wrong target, a damaged or newer profile, an output that exists: one clear line on stderr and an exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Run

pytest.importorskip("rich")

CASES = {
    "no such script": (["profile", "missing.py"], 2, "the target does not exist: missing.py"),
    "no such command": (["profile", "--", "no-such-command"], 2, "the command does not exist: no-such-command"),
    "no script in a directory": (["profile", "folder"], 2, "without __main__.py: "),
    "an output that exists": (["profile", "-o", "newer.json", "fine.py"], 2, "the output exists already: newer.json"),
    "a page that exists": (["profile", "--html", "newer.json", "fine.py"], 2, "the output exists already: newer.json"),
    "no such profile": (["report", "missing.json"], 4, "cannot read the profile: missing.json"),
    "a truncated profile": (["report", "cut.json"], 3, "the profile is not JSON: cut.json"),
    "bytes that are no text": (["report", "bytes.json"], 3, "the profile is not JSON: bytes.json"),
    "another JSON file": (["report", "other.json"], 3, "the profile is damaged at schema: other.json"),
    "a newer schema": (["report", "newer.json"], 3, "written by a newer Glowplug: newer.json (schema 99"),
    "a newer schema, compared": (["compare", "newer.json", "newer.json"], 3, "written by a newer Glowplug: newer.json"),
    "a newer schema, gated": (["budget", "newer.json", "--max", "2s"], 3, "written by a newer Glowplug: newer.json"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bad")
    (path / "folder").mkdir()
    (path / "fine.py").write_text("open('ran', 'w')\n")
    (path / "cut.json").write_text('{"schema": 1')
    (path / "bytes.json").write_bytes(bytes(range(128, 256)))
    (path / "other.json").write_text("{}")
    (path / "newer.json").write_text(json.dumps({"schema": 99}))
    return path


@pytest.mark.parametrize("case", CASES)
def test_one_line_and_an_exit_code(folder: Path, run: Run, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    words, code, message = CASES[case]
    monkeypatch.chdir(folder)
    done = run(*words)
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("glowplug: ")
    assert message in lines[0]
    assert "; " in lines[0], "no remedy"
    assert not (folder / "ran").exists(), "the target ran"


def test_a_command_that_is_no_python_is_profiled_with_a_note(folder: Path, run: Run) -> None:
    done = run("profile", "--", "sh", "-c", "echo mine; exit 7")
    assert done.returncode == 7
    assert done.stdout == "mine\n"
    assert "the target is not Python" in done.stderr
