"""`glowplug profile`: the target owns stdout, ours goes to stderr, the exit code is the target's."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from glowplug.cli.options import VerbParser, add_json

pytest.importorskip("glowplug.report")
pytest.importorskip("glowplug.advise")

from glowplug.cli import profile as verb
from glowplug.core.errors import OutputExistsError, StorageError, UsageError
from glowplug.core.profile_json import read_profile


def run(*words: object) -> int:
    parser = VerbParser()
    verb.add_arguments(parser)
    add_json(parser, program_owns_stdout=True)
    return verb.run(parser.parse_args([str(word) for word in words]))


def test_outputs_and_exit_code(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "target.py"
    script.write_text("import sys, json\nprint('mine', sys.argv[1:])\nraise SystemExit(3)\n")
    files = ["-o", tmp_path / "p.json", "--html", tmp_path / "p.html", "--trace", tmp_path / "p.trace"]
    files += ["--speedscope", tmp_path / "p.speedscope.json"]
    assert run(*files, script, "-o", "--html") == 3
    out, err = capfd.readouterr()
    assert out == "mine ['-o', '--html']\n"
    assert "interpreter" in err
    profile = read_profile(tmp_path / "p.json")
    assert profile.exit_code == 3
    assert profile.command == (str(script), "-o", "--html")
    assert (tmp_path / "p.html").stat().st_size > 1000
    json.loads((tmp_path / "p.trace").read_text())
    assert json.loads((tmp_path / "p.speedscope.json").read_text())["exporter"] == "glowplug"


def test_existing_outputs_are_refused_before_the_target_runs(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text("mine")
    script = tmp_path / "target.py"
    script.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    with pytest.raises(OutputExistsError):
        run("-o", tmp_path / "p.json", script)
    assert not (tmp_path / "ran").exists()
    assert run("-o", tmp_path / "p.json", "--force", script) == 0


def test_the_report_is_shown_where_a_file_cannot_be_written(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The target may have run for minutes, and may have removed the folder."""
    script = tmp_path / "target.py"
    script.write_text(f"import os\nos.rmdir({str(tmp_path / 'out')!r})\n")
    (tmp_path / "out").mkdir()
    with pytest.raises(StorageError, match="cannot write here"):
        run("-o", tmp_path / "out" / "p.json", script)
    assert "interpreter" in capfd.readouterr().err


def test_modules_code_commands_and_signals(capfd: pytest.CaptureFixture[str]) -> None:
    assert run("-c", "import sys; print(sys.argv)", "-x") == 0
    assert capfd.readouterr().out == "['-c', '-x']\n"
    assert run("-m", "this.that.is.not") == 1
    assert run("--", "true") == 0
    assert run("-c", "import os; os.kill(os.getpid(), 9)") == 128 + 9


def test_json_goes_to_a_file_since_stdout_is_the_programs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    document = tmp_path / "p.json"
    assert run("--json-file", document, "-c", "print('mine')") == 0
    out, err = capfd.readouterr()
    assert out == "mine\n"
    assert err == f"wrote {document}\n"
    assert json.loads(document.read_text())["schema"] == 1


def test_json_without_a_file_is_one_line_and_no_file_is_touched(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "target.py"
    script.write_text("print('mine')")
    with pytest.raises(SystemExit) as left:
        run("--json", script)
    out, err = capfd.readouterr()
    assert (left.value.code, out, err.count("\n")) == (2, "", 1)
    assert "--json-file FILE" in err
    assert script.read_text() == "print('mine')"


@pytest.mark.parametrize("option", ["-o", "--html", "--trace", "--speedscope", "--json-file"])
def test_a_folder_that_is_not_there_is_found_before_the_target_runs(tmp_path: Path, option: str) -> None:
    script = tmp_path / "target.py"
    script.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    with pytest.raises(UsageError, match="no folder for an output"):
        run(option, tmp_path / "missing" / "p", script)
    assert not (tmp_path / "ran").exists()


def test_missing_jinja_is_found_before_the_target_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "target.py"
    script.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(UsageError, match="jinja2"):
        run("--html", tmp_path / "p.html", script)
    assert not (tmp_path / "ran").exists()


def test_quiet_prints_the_last_line_alone(capfd: pytest.CaptureFixture[str]) -> None:
    assert run("-q", "-c", "print('mine')") == 0
    assert capfd.readouterr() == ("mine\n", "Nothing was found that would make this start shorter.\n")
