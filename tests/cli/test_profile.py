"""`glowplug profile`: the target owns stdout, ours goes to stderr, the exit code is the target's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from glowplug.cli.options import VerbParser

pytest.importorskip("glowplug.report")
pytest.importorskip("glowplug.advise")

from glowplug.cli import profile as verb
from glowplug.core.errors import OutputExistsError
from glowplug.core.profile_json import read_profile


def run(*words: object) -> int:
    parser = VerbParser()
    verb.add_arguments(parser)
    parser.add_argument("--json", action="store_true")
    return verb.run(parser.parse_args([str(word) for word in words]))


def test_outputs_and_exit_code(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "target.py"
    script.write_text("import sys, json\nprint('mine', sys.argv[1:])\nraise SystemExit(3)\n")
    files = ["-o", tmp_path / "p.json", "--html", tmp_path / "p.html", "--trace", tmp_path / "p.trace"]
    assert run(*files, script, "-o", "--html") == 3
    out, err = capfd.readouterr()
    assert out == "mine ['-o', '--html']\n"
    assert "interpreter" in err
    profile = read_profile(tmp_path / "p.json")
    assert profile.exit_code == 3
    assert profile.command == (str(script), "-o", "--html")
    assert (tmp_path / "p.html").stat().st_size > 1000
    json.loads((tmp_path / "p.trace").read_text())


def test_existing_outputs_are_refused_before_the_target_runs(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text("mine")
    script = tmp_path / "target.py"
    script.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    with pytest.raises(OutputExistsError):
        run("-o", tmp_path / "p.json", script)
    assert not (tmp_path / "ran").exists()
    assert run("-o", tmp_path / "p.json", "--force", script) == 0


def test_modules_code_commands_and_signals(capfd: pytest.CaptureFixture[str]) -> None:
    assert run("-c", "import sys; print(sys.argv)", "-x") == 0
    assert capfd.readouterr().out == "['-c', '-x']\n"
    assert run("-m", "this.that.is.not") == 1
    assert run("--", "true") == 0
    assert run("-c", "import os; os.kill(os.getpid(), 9)") == 128 + 9


def test_json_goes_to_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    assert run("--json", "-c", "print('mine')") == 0
    out, err = capfd.readouterr()
    assert out == "mine\n"
    assert json.loads(err)["schema"] == 1
