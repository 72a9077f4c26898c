"""The verbs `report` and `compare` as a user calls them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from glowplug.cli import compare, report
from glowplug.cli.main import build_parser
from glowplug.core.errors import NewerSchemaError, OutputExistsError, ProfileDamagedError, StorageError, UsageError
from glowplug.core.profile import PHASES, Process, Profile, Runs, Span
from glowplug.core.profile_json import encode, read_profile, write_profile


def profile(wall_ns: int, runs: int = 1) -> Profile:
    spans = (Span(1, None, 7, 7, "import", "tensorflow", 0, wall_ns, {"kind": "module", "self_ns": wall_ns}),)
    walls = tuple(wall_ns + number * 1_000_000 for number in range(runs))
    return Profile(
        ("t.py",),
        0,
        wall_ns,
        {},
        spans,
        {**dict.fromkeys(PHASES, 0), "import": wall_ns},
        processes=(Process(7, 1, ("t.py",), "root", 0, wall_ns, 0, True),),
        runs=Runs(walls, {"import": walls}) if runs > 1 else None,
    )


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "p.json"
    write_profile(profile(3_000_000_000), path)
    return path


def call(verb: ModuleType, *words: object) -> int:
    """Run a verb without the error boundary of the command."""
    args = build_parser([verb.NAME]).parse_args([verb.NAME, *(str(word) for word in words)])
    return int(args.run(args))


def test_prints_the_waterfall(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(report, saved) == 0
    out = capsys.readouterr().out
    assert "Where the time went" in out
    assert "3.00 s" in out


def test_json_is_the_profile(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(report, saved, "--json") == 0
    assert json.loads(capsys.readouterr().out) == encode(read_profile(saved))


def test_writes_the_files_it_is_asked_for(saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    html, trace = tmp_path / "p.html", tmp_path / "p.trace.json"
    assert call(report, saved, "--html", html, "--trace", trace) == 0
    assert html.read_text().startswith("<!DOCTYPE html>")
    assert json.loads(trace.read_text())["traceEvents"]
    captured = capsys.readouterr()
    assert captured.out == ""
    assert str(html) in captured.err


@pytest.mark.parametrize("option", ["--html", "--trace"])
def test_does_not_overwrite_without_force(saved: Path, tmp_path: Path, option: str) -> None:
    path = tmp_path / "mine"
    path.write_text("mine")
    with pytest.raises(OutputExistsError, match="--force"):
        call(report, saved, option, path)
    assert path.read_text() == "mine"
    assert call(report, saved, option, path, "--force") == 0
    assert path.read_text() != "mine"


def test_one_existing_output_means_none_is_written(saved: Path, tmp_path: Path) -> None:
    html, trace = tmp_path / "p.html", tmp_path / "p.trace.json"
    trace.write_text("mine")
    with pytest.raises(OutputExistsError):
        call(report, saved, "--html", html, "--trace", trace)
    assert not html.exists()


@pytest.mark.parametrize("option", ["--html", "--trace", "--speedscope"])
def test_what_is_read_is_never_replaced(saved: Path, option: str) -> None:
    before = saved.read_bytes()
    with pytest.raises(UsageError, match="would replace another file of this command"):
        call(report, saved, option, saved.parent / "." / saved.name, "--force")
    with pytest.raises(UsageError, match="would replace"):
        call(compare, saved, saved, "--html", saved, "--force")
    assert saved.read_bytes() == before


def test_each_output_has_a_place_of_its_own(saved: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="would replace"):
        call(report, saved, "--html", tmp_path / "x", "--trace", tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_bad_profiles_are_named(tmp_path: Path) -> None:
    damaged, newer = tmp_path / "damaged.json", tmp_path / "newer.json"
    damaged.write_text('{"schema": 1')
    newer.write_text(json.dumps({**encode(profile(5)), "schema": 99}))
    with pytest.raises(ProfileDamagedError):
        call(report, damaged)
    with pytest.raises(NewerSchemaError):
        call(report, newer)
    with pytest.raises(StorageError):
        call(compare, tmp_path / "none.json", newer)


def test_compare_prints_and_fails_only_when_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fast, slow = tmp_path / "fast.json", tmp_path / "slow.json"
    write_profile(profile(1_000_000_000, runs=5), fast)
    write_profile(profile(3_000_000_000, runs=5), slow)
    assert call(compare, fast, slow) == 0
    assert "slower 3.0x" in capsys.readouterr().out
    assert call(compare, fast, slow, "--fail-slower") == 1
    assert call(compare, slow, fast, "--fail-slower") == 0
    capsys.readouterr()
    assert call(compare, fast, slow, "--json") == 0
    assert json.loads(capsys.readouterr().out)["total"]["verdict"] == "slower"


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys, argparse\n"
        "from glowplug.cli import report, compare\n"
        "for verb in (report, compare): verb.add_arguments(argparse.ArgumentParser())\n"
        "print([m for m in sys.modules if m.split('.')[0] in ('rich', 'jinja2', 'numpy', 'tensorflow')"
        " or m.startswith(('glowplug.report', 'glowplug.core'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_a_comparison_as_a_page(saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("jinja2")
    after, page = tmp_path / "after.json", tmp_path / "change.html"
    write_profile(profile(1_000_000_000), after)
    assert call(compare, saved, after, "--html", page) == 0
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"wrote {page}\n")
    assert "3.00 s before, 1.00 s after" in page.read_text()
    with pytest.raises(OutputExistsError):
        call(compare, saved, after, "--html", page)
    assert call(compare, saved, after, "--html", page, "--force", "--json") == 0
    assert json.loads(capsys.readouterr().out)["total"]["after_ns"] == 1_000_000_000
