"""A verb with streams that are closed, full, or of an encoding that lacks a sign: one line at most, its own code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from glowplug.core.profile_json import write_profile
from tests.cli.test_report_verbs import profile

_NAMES = {"stdin": 0, "stdout": 1, "stderr": 2}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    write_profile(profile(3_000_000_000), tmp_path / "start.json")
    return tmp_path / "start.json"


def glowplug(
    environment: dict[str, str], arguments: list[str], redirection: str = ""
) -> subprocess.CompletedProcess[bytes]:
    """Run the command as a shell does with this redirection."""
    script = f'exec "$@" {redirection}'
    words = ["sh", "-c", script, "sh", sys.executable, "-m", "glowplug", *arguments]
    return subprocess.run(words, env=environment, capture_output=True, timeout=120)


@pytest.mark.parametrize("verb", ["report", "compare", "budget", "profile", "cache", "complete"])
@pytest.mark.parametrize("name", _NAMES)
def test_a_closed_stream_changes_no_exit_code(
    name: str, verb: str, environment: dict[str, str], saved: Path, tmp_path: Path
) -> None:
    words = {
        "report": ["report", str(saved)],
        "compare": ["compare", str(saved), str(saved)],
        "budget": ["budget", str(saved), "--max", "99s", "--json"],
        "profile": ["profile", "-q", "-c", "pass"],
        "cache": ["cache", "ls", "--cache-dir", str(tmp_path / "none"), "--json"],
        "complete": ["complete", "bash"],
    }[verb]
    done = glowplug(environment, words, f"{_NAMES[name]}>&-")
    assert done.returncode == 0, done.stderr
    if name != "stderr" and verb != "profile":
        assert done.stderr == b""
    if "--json" in words and name != "stdout":
        json.loads(done.stdout)


def test_an_error_is_not_printed_on_stdout(environment: dict[str, str], tmp_path: Path) -> None:
    for words in (["report", str(tmp_path / "none")], ["run", str(tmp_path / "none")]):
        done = glowplug(environment, words, "2>&-")
        assert (done.returncode != 0, done.stdout) == (True, b"")


@pytest.mark.parametrize("closed", ["1>&-", "2>&-"])
def test_what_a_verb_opens_is_no_stream(closed: str, environment: dict[str, str], tmp_path: Path) -> None:
    """Else whatever a library writes to standard error would land in it."""
    code = (
        "import os\nfrom glowplug.cli import main, explain\n"
        f"opened = lambda args: open({str(tmp_path / 'number')!r}, 'w').write(str(os.open('/', 0))) and 0\n"
        "explain.run = opened\nmain.main(['explain'])"
    )
    words = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-c", code]
    assert subprocess.run(words, env=environment, capture_output=True, timeout=60).returncode == 0
    assert int((tmp_path / "number").read_text()) > 2


def test_a_profiled_program_finds_a_closed_stream_closed(environment: dict[str, str], tmp_path: Path) -> None:
    code = f"import sys; open({str(tmp_path / 'seen')!r}, 'w').write(str(sys.stdout))"
    assert glowplug(environment, ["profile", "-q", "-c", code], "1>&-").returncode == 0
    assert (tmp_path / "seen").read_text() == "None"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_behind_stdout_is_one_line_with_a_remedy(environment: dict[str, str], saved: Path) -> None:
    done = glowplug(environment, ["report", str(saved)], ">/dev/full")
    assert done.returncode == 4
    assert done.stderr.decode().splitlines() == [
        "glowplug: No space left on device; make room on that disk, or name another place"
    ]


@pytest.mark.parametrize("encoding", ["utf-8:strict", "ascii:strict", "latin-1:strict"])
def test_a_name_that_is_no_text_is_printed_with_escapes(
    encoding: str, environment: dict[str, str], tmp_path: Path
) -> None:
    place = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9 \xff")
    words = ["cache", "ls", "--cache-dir", place]
    done = glowplug({**environment, "PYTHONIOENCODING": encoding}, words)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\\udcff: no trace cache yet" in done.stdout
