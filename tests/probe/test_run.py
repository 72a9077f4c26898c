"""Targets that are wrong, repetition, and a cold page cache."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from glowplug.core.errors import UsageError
from glowplug.core.profile import PHASES
from glowplug.probe import page_cache
from glowplug.probe.run import profilable_target, profile_target


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "nothing to profile"),
        (["missing.py"], "does not exist: missing.py"),
        (["-m"], "-m needs a value"),
        (["--"], "no command after --"),
        (["--", "no-such-command-anywhere"], "the command does not exist"),
        (["--unknown"], "no such option: --unknown"),
    ],
)
def test_a_wrong_target_gets_one_line(words: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        profilable_target(words)
    assert "\n" not in str(caught.value)


def test_a_directory_needs_a_main(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="without __main__"):
        profilable_target([str(tmp_path)])
    (tmp_path / "__main__.py").write_text("import colorsys")
    profile = profile_target([str(tmp_path)])
    assert profile.exit_code == 0
    assert any(span.name == "colorsys" for span in profile.of_kind("module"))


def test_a_command_without_dashes_is_pointed_to_them() -> None:
    with pytest.raises(UsageError, match="glowplug profile -- ls"):
        profilable_target(["ls"])


def test_repetition_keeps_every_run_and_returns_the_median() -> None:
    seen: list[str] = []
    profile = profile_target(["-c", "import json"], repeat=3, progress=seen.append)
    assert seen == ["run 1 of 3", "run 2 of 3", "run 3 of 3"]
    assert profile.runs is not None
    assert len(profile.runs.wall_ns) == len(profile.runs.cpu_ns) == 3
    assert profile.wall_ns == sorted(profile.runs.wall_ns)[1]
    assert set(profile.runs.phases) == set(PHASES)


def test_repetition_ends_with_a_run_that_fails() -> None:
    profile = profile_target(["-c", "raise SystemExit(4)"], repeat=5)
    assert profile.exit_code == 4
    assert profile.runs is None
    assert any("run 1 of 5 ended with exit code 4" in note for note in profile.notes)


def test_no_run_at_all_is_refused() -> None:
    with pytest.raises(UsageError, match="--repeat 0"):
        profile_target(["-c", "pass"], repeat=0)


def test_without_leave_to_drop_the_cache_files_are_evicted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "target.py"
    script.write_text("pass")
    monkeypatch.setattr(page_cache, "_DROP", tmp_path / "missing" / "drop_caches")
    monkeypatch.setattr(page_cache.sysconfig, "get_path", lambda name: str(tmp_path))
    cooled = page_cache.cool(["python", str(script)])
    assert cooled.state == "evicted"
    assert "could not be dropped" in cooled.note


def test_where_nothing_can_be_done_the_profile_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_cache, "_DROP", tmp_path / "missing" / "drop_caches")
    monkeypatch.setattr(page_cache, "_start_files", lambda arguments: iter(()))
    profile = profile_target(["-c", "pass"], cold_cache=True)
    assert profile.environment["page_cache"] == "warm"
    assert any("this run was warm" in note for note in profile.notes)


def test_series_and_environment() -> None:
    profile = profile_target(["-c", "import time; data = bytearray(30 << 20); time.sleep(0.3)"])
    values = [value for _, value in profile.series_named("rss_bytes").points]
    assert max(values) > 30 << 20
    times = [at_ns for at_ns, _ in profile.series_named("threads").points]
    assert times == sorted(times)
    assert times[-1] <= profile.wall_ns
    assert profile.environment["cpu_count"] == len(os.sched_getaffinity(0))
    assert profile.environment["peak_rss_bytes"] > 30 << 20
    assert profile.processes[0].attrs["cpu_ns"] == profile.environment["cpu_ns"] > 0
    assert profile.environment["runtime_used"] is False


def test_a_mark_is_in_the_profile_and_costs_nothing_elsewhere(tmp_path):
    script = tmp_path / "service.py"
    script.write_text("import glowplug\nglowplug.mark('ready')\nsum(range(3_000_000))\n")
    profile = profile_target([str(script)])
    assert profile.exit_code == 0
    assert [(span.name, span.duration_ns) for span in profile.of_kind("mark")] == [("ready", 0)]
    assert profile.cold_start.until == "ready"
    assert profile.cold_start.ns < profile.wall_ns
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_exit_is_a_phase_of_its_own():
    profile = profile_target(["-c", "import atexit; atexit.register(lambda: sum(range(3_000_000)))"])
    (leaving,) = profile.of_kind("exit")
    assert leaving.phase == "exit"
    assert profile.phases["exit"] == leaving.duration_ns
    assert sum(profile.phases.values()) == profile.wall_ns
