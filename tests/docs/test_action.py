"""The action for GitHub: its script, run on a repository with two commits, and its description."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .blocks import ROOT

ACTION = ROOT / ".github" / "actions" / "start-up"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    if shutil.which("git") is None:
        pytest.skip("there is no git")
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch", "main")
    (folder / "train.py").write_text("import sys\nprint(sys.argv)\n")
    commit(folder, "first")
    git(folder, "checkout", "--quiet", "-b", "slower")
    (folder / "train.py").write_text("import sys, json, decimal\nassert sys.argv[1:] == ['--name', 'a b'], sys.argv\n")
    commit(folder, "second")
    return folder


def git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=tests", "-c", "user.email=tests@example.org"]
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def commit(folder: Path, message: str) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "--quiet", "-m", message)


def compare(folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "REPEAT": "2"}
    command = [ACTION / "compare.sh", "train.py --name 'a b'", "main", "comment.md"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def test_writes_a_comment_and_leaves_nothing_behind(repository: Path) -> None:
    done = compare(repository)
    assert done.returncode == 0, done.stderr
    comment = (repository / "comment.md").read_text()
    assert comment.startswith("### Start of `train.py --name 'a b'`\n")
    assert "total" in comment
    assert (repository / "after.html").is_file()
    assert (repository / "change.html").is_file()
    listed = subprocess.run(["git", "worktree", "list"], cwd=repository, capture_output=True, text=True).stdout
    assert len(listed.splitlines()) == 1


@pytest.mark.parametrize(("limit", "code"), [("1m", 0), ("1ms", 1)])
def test_holds_the_projects_limits(repository: Path, limit: str, code: int) -> None:
    (repository / "pyproject.toml").write_text(f'[tool.glowplug.budget]\nmax = "{limit}"\n')
    done = compare(repository)
    assert done.returncode == code, done.stderr
    assert (repository / "comment.md").is_file()


def test_passes_its_inputs_as_variables() -> None:
    """Text that somebody wrote must not become part of a script."""
    yaml = pytest.importorskip("yaml")
    action = yaml.safe_load((ACTION / "action.yml").read_text())
    assert set(action["inputs"]) == {"program", "base", "repeat", "token"}
    for step in action["runs"]["steps"]:
        assert "${{" not in step["run"]
