"""The terminal report: golden at 80 columns, and safe and in bounds whatever the profile holds."""

from __future__ import annotations

import dataclasses
import io
import os
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glowplug.core.profile import Finding, Profile, Remedy, Span
from glowplug.report import lines, terminal
from glowplug.report.lines import line_text
from glowplug.report.wording import cell_width

from . import profiles

GOLDEN = Path(__file__).with_name("golden") / "training_80.txt"
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


def rendered(profile: Profile, width: int = 80, *, color: bool | None = None) -> str:
    stream = io.StringIO()
    terminal.print_profile(profile, stream, width=width, color=color)
    return stream.getvalue()


def test_golden_at_80_columns() -> None:
    """Write the file anew with GLOWPLUG_GOLDEN=1 after a change that is meant."""
    text = rendered(profiles.training())
    if os.environ.get("GLOWPLUG_GOLDEN") == "1":
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text()


@pytest.mark.parametrize("width", [60, 80, 110])
@pytest.mark.parametrize("make", [profiles.training, profiles.large])
def test_fits_the_width(make: object, width: int) -> None:
    lines = rendered(make(), width).splitlines()  # type: ignore[operator]
    assert max(map(cell_width, lines)) <= width


def test_a_long_title_is_broken_and_keeps_the_line_of_code_at_its_end() -> None:
    title = "The graph grows by 16 operations in each of 200 rounds; most are added at some/folder/of/mine/loop.py:11"
    finding = Finding("graph_grows_each_round", title, {}, 4_000_000_000, Remedy("Hoist it."))
    lines = [line_text(line) for line in terminal.finding_lines([finding], 80)]
    assert lines[0].endswith("saves 4.00 s")
    assert any(line.endswith("loop.py:11") for line in lines[1:3])
    assert max(map(cell_width, lines)) <= 80


def test_colour_adds_escapes_and_no_words() -> None:
    profile = profiles.training()
    colored = rendered(profile, color=True)
    assert ESCAPES.search(colored)
    assert [line.rstrip() for line in ESCAPES.sub("", colored).splitlines()] == rendered(profile).splitlines()


def test_no_colour_when_not_a_terminal() -> None:
    assert "\x1b" not in rendered(profiles.training())


def test_hostile_names_cannot_drive_the_terminal() -> None:
    for color in (None, True):
        text = ESCAPES.sub("", rendered(profiles.hostile(), color=color)) if color else rendered(profiles.hostile())
        assert "\x1b" not in text
        assert "\u2028" not in text
        assert r"\x1b[31m" in text
        text.encode()  # lone surrogates are gone


@given(st.text(st.characters(codec=None), max_size=200))
def test_any_name_fits_and_prints(name: str) -> None:
    span = Span(1, None, profiles.ROOT, profiles.ROOT, "import", name, 0, 5_000_000, {"kind": "module", "site": name})
    trace = Span(2, None, profiles.ROOT, profiles.ROOT, "trace", name, 5_000_000, 9_000_000, {"kind": "trace"})
    profile = dataclasses.replace(profiles.training(), command=(name,), spans=(span, trace), notes=(name,))
    text = rendered(profile)
    text.encode()
    assert all(char.isprintable() or char == "\n" for char in text if char != "\xa0" and not char.isspace())
    assert all(cell_width(line) <= 80 for line in text.split("\n"))


def test_without_rich_the_same_text_and_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = rendered(profiles.training())
    monkeypatch.setattr(terminal, "find_spec", lambda name: None)
    text = rendered(profiles.training(), color=True)
    assert text.startswith(whole)
    assert "pip install 'glowplug[report]'" in text


def test_ascii_terminals_get_ascii() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    terminal.print_profile(profiles.training(), stream)
    stream.seek(0)
    text = stream.read()
    assert "trace" in text
    assert "#" in text


def test_the_unexplained_is_always_shown_and_the_sum_is_wall_time() -> None:
    lines = rendered(Profile(("x",), 0, 10_000_000, {}, (), {"unaccounted": 10_000_000})).splitlines()
    assert any(line.startswith("user code") for line in lines)
    assert any(line.startswith("unaccounted") and "100.0 %" in line for line in lines)
    assert any(line.startswith("sum = wall time") and "10.0 ms" in line for line in lines)


def test_ends_with_what_would_help_most() -> None:
    last = " ".join(rendered(profiles.training()).split("\n\n")[-1].split())
    assert last == (
        "What would help most (two_traces_on_first_step): Variables were created inside the first trace, so TensorFlow"
        " traced again. It would save about 7.30 s of 32.6 s."
    )


def test_no_finding_is_said() -> None:
    text = rendered(dataclasses.replace(profiles.training(), findings=()))
    assert "Findings\nnone found\n" in text
    assert text.endswith("\nNothing was found that would make this start shorter.\n")


def test_a_danger_has_no_seconds() -> None:
    danger = Finding("fork_after_runtime_start", "forked", {}, 0, Remedy("Start workers with spawn. Or not."))
    text = rendered(dataclasses.replace(profiles.training(), findings=(danger,)))
    assert text.endswith("What would help most (fork_after_runtime_start): Start workers with spawn.\n")


@pytest.mark.parametrize("width", range(20, 100))
def test_no_number_is_torn_from_its_unit(width: int) -> None:
    text = "196 ms in all, exit 0, 2 CPUs, peak memory 18.2 MB, 65.7 % of 32.6 s, 1.5 us and 7 kB, 12 seconds."
    shown = [line_text(line) for line in lines.wrap(text, width)]
    assert " ".join(shown) == text
    assert all(len(line) <= width for line in shown)
    assert not [line for line in shown if re.match(r"(ms|MB|%|s|us|kB)\b|%", line)]


def test_killed_runs_say_so() -> None:
    assert "killed by signal 9" in rendered(profiles.hostile())


def test_code_and_commands_stay_whole() -> None:
    command = "glowplug run " + "x" * 120
    finding = Finding("rule", "title", {}, 5, Remedy("text", "code = " + "y" * 120, command))
    text = "\n".join(map(line_text, terminal.finding_lines([finding], 80)))
    assert command in text
    assert "y" * 120 in text


def test_rendering_does_not_load_the_html_side() -> None:
    import subprocess

    code = "import sys, glowplug.report.terminal; print(any(m in sys.modules for m in ('rich', 'jinja2', 'numpy')))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"
