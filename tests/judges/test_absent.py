"""A judge that is not there is said to be absent, and fails nothing."""

from __future__ import annotations

from pathlib import Path

from tests.judges import grpc_js, h2spec, run, serving_cases
from tests.judges.verdict import Verdict

ROOT = Path(__file__).parents[2]


def test_judges_that_are_not_there(tmp_path, monkeypatch):
    assert serving_cases.judge("").good is None
    found = serving_cases.judge(str(tmp_path))
    assert found.good is None
    assert serving_cases.TEST in found.text
    assert h2spec.judge("").good is None
    assert h2spec.judge(str(tmp_path / "h2spec")).good is None
    monkeypatch.setenv("PATH", str(tmp_path))
    assert grpc_js.judge().good is None


def test_one_that_is_not_satisfied_fails_the_command(monkeypatch, capsys):
    verdicts = {
        "a": Verdict("a", None, "not here"),
        "b": Verdict("b", True, "3 of 3"),
        "c": Verdict("c", False, "1 of 3"),
    }
    monkeypatch.setattr("sys.argv", ["run.py"])
    monkeypatch.setattr(run, "JUDGES", {name: lambda args, name=name: verdicts[name] for name in "ab"})
    assert run.main() == 0
    assert [line.split()[:2] for line in capsys.readouterr().out.splitlines()] == [["a", "absent"], ["b", "good"]]
    monkeypatch.setattr(run, "JUDGES", {name: lambda args, name=name: verdicts[name] for name in "abc"})
    assert run.main() == 1
    assert "BAD" in capsys.readouterr().out


def test_the_judges_are_in_the_makefile_and_in_the_help():
    makefile = (ROOT / "Makefile").read_text()
    assert "tests.judges.run --serving '$(SERVING)' --h2spec '$(H2SPEC)'" in makefile
    assert all(f"    {name} " in (run.__doc__ or "") for name in run.JUDGES)
