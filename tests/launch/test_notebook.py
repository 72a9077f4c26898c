"""Profiles in notebooks: what a cell that ends in one shows, and the magic of cells."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest

import glowplug

pytest.importorskip("jinja2")


def test_a_profile_shows_itself_as_the_report(tmp_path: Path) -> None:
    program = tmp_path / 'a"b.py'
    program.write_text("import json\n")
    profile = glowplug.profile([str(program)])
    shown = profile._repr_html_()
    assert shown is not None
    frame = re.fullmatch(
        r'<iframe title="([^"]*)" sandbox="allow-scripts" style="[^"]*" srcdoc="([^"]*)"></iframe>', shown
    )
    assert frame is not None
    assert unescape(frame[2]).startswith("<!DOCTYPE html>")
    assert repr(profile).startswith("<Profile of ")
    assert "\n" not in repr(profile)
    assert len(repr(profile)) < 300


def test_a_profile_has_its_findings() -> None:
    assert "findings" in repr(glowplug.profile(["-c", "pass"]))


CELLS = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "glowplug")
profile = shell.run_cell_magic("glowplug", "--repeat 2 --calls", "import json\\nprint(json.dumps([1, 2]))")
formatted, _ = shell.display_formatter.format(profile)
said = []
for line in ("--repeat", "--repeat 0", "--nope", "'"):
    shell.showtraceback = lambda *args, **kwargs: None
    result = shell.run_cell(f"%%glowplug {line}\\npass")
    error = result.error_in_exec
    said.append([type(error).__name__, str(error)])
print(json.dumps([profile.exit_code, len(profile.runs.wall_ns), sorted(formatted), said]))
"""


def test_the_magic_profiles_a_cell(tmp_path: Path) -> None:
    pytest.importorskip("IPython")
    command = [sys.executable, "-c", CELLS]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env={**_environment(), "IPYTHONDIR": str(tmp_path)}
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:2] == ["[1, 2]", "[1, 2]"]
    exit_code, runs, kinds, said = json.loads(lines[-1])
    assert (exit_code, runs) == (0, 2)
    assert {"text/html", "text/plain"} <= set(kinds)
    assert {kind for kind, _ in said} == {"UsageError"}
    assert all("\n" not in text and text.startswith("%%glowplug: ") for _, text in said)


def _environment() -> dict[str, str]:
    import os

    return dict(os.environ)
