"""Children are followed: new programs, forks, every start method of multiprocessing; threads have spans too."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.probe.profiling import check

from glowplug.core.profile import Profile
from glowplug.probe.run import profile_target


def profile_code(tmp_path: Path, code: str) -> Profile:
    path = tmp_path / "target.py"
    path.write_text(code)
    profile = profile_target([str(path)])
    check(profile)
    assert profile.exit_code == 0
    return profile


def modules_of(profile: Profile, pid: int) -> set[str]:
    return {span.name for span in profile.of_kind("module") if span.pid == pid}


def test_fork_gives_two_processes(tmp_path: Path) -> None:
    profile = profile_code(
        tmp_path,
        "import os\n"
        "import json\n"
        "child = os.fork()\n"
        "if child == 0:\n    import colorsys\n    os._exit(0)\n"
        "os.waitpid(child, 0)\n"
        "import wave\n",
    )
    root, child = profile.processes
    assert (root.how, child.how, child.parent_pid) == ("root", "fork", root.pid)
    assert "colorsys" in modules_of(profile, child.pid)
    assert "colorsys" not in modules_of(profile, root.pid)
    assert "wave" in modules_of(profile, root.pid)
    (fork,) = profile.of_kind("fork")
    assert fork.attrs["child"] == child.pid
    assert fork.attrs["runtime_ready"] is False
    assert fork.attrs["site"] == f"{tmp_path / 'target.py'}:3"


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(tmp_path: Path, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", "/tmp")  # where a fork server has its socket, whose path must be short
    profile = profile_code(
        tmp_path,
        "import multiprocessing\n"
        "def work(number):\n    import colorsys\n    return number * 2\n"
        "if __name__ == '__main__':\n"
        f"    with multiprocessing.get_context({method!r}).Pool(2) as pool:\n"
        "        assert pool.map(work, range(4)) == [0, 2, 4, 6]\n",
    )
    workers = [process for process in profile.processes if "colorsys" in modules_of(profile, process.pid)]
    assert 1 <= len(workers) <= 2
    assert all(worker.pid != profile.root_pid for worker in workers)


def test_other_programs_and_waiting_for_them(tmp_path: Path) -> None:
    profile = profile_code(
        tmp_path,
        "import subprocess, sys\n"
        "subprocess.run(['sleep', '0.3'], check=True)\n"
        "subprocess.run([sys.executable, '-c', 'import colorsys'], check=True)\n",
    )
    waits = [span for span in profile.of_kind("io") if span.attrs["io"] == "subprocess"]
    longest = max(waits, key=lambda span: span.duration_ns)
    assert longest.attrs["target"] == "sleep 0.3"
    assert longest.attrs["site"] == f"{tmp_path / 'target.py'}:2"
    assert longest.duration_ns > 0.25e9
    assert profile.phases["io_wait"] >= longest.duration_ns
    assert any(process.command == ("sleep", "0.3") and not process.python for process in profile.processes)
    assert any("colorsys" in modules_of(profile, process.pid) for process in profile.processes[1:])


def test_threads_have_spans_of_their_own(tmp_path: Path) -> None:
    profile = profile_code(
        tmp_path,
        "import threading\n"
        "def work():\n    import colorsys\n    done.wait(5)\n"
        "done = threading.Event()\n"
        "thread = threading.Thread(target=work, name='loader')\n"
        "thread.start()\n"
        "done.set()\n"
        "thread.join()\n",
    )
    (life,) = (span for span in profile.of_kind("thread") if span.name == "loader")
    assert life.thread != life.pid
    (module,) = (span for span in profile.of_kind("module") if span.name == "colorsys")
    assert module.parent == life.id
    assert not profile.on_main_thread(module)


def test_a_program_that_is_not_python(tmp_path: Path) -> None:
    profile = profile_target(["--", "sleep", "0.1"])
    check(profile)
    assert profile.exit_code == 0
    assert profile.phases["interpreter"] == profile.wall_ns
    assert any("not Python" in note for note in profile.notes)
    assert profile.series_named("rss_bytes").points


def test_python_below_a_shell_is_followed(tmp_path: Path) -> None:
    profile = profile_target(["--", "sh", "-c", "python3 -c 'import colorsys' && true"])
    check(profile)
    assert any(span.name == "colorsys" for span in profile.of_kind("module"))


def test_an_isolated_python_is_a_process_with_a_note(tmp_path: Path) -> None:
    import sys

    profile = profile_target(["--", sys.executable, "-I", "-c", "import colorsys"])
    check(profile)
    assert not list(profile.of_kind("module"))
    assert any("-I" in note for note in profile.notes)


def test_replacing_the_program_keeps_both(tmp_path: Path) -> None:
    profile = profile_code(
        tmp_path,
        "import colorsys, os, sys\nos.execv(sys.executable, [sys.executable, '-c', 'import wave'])\n",
    )
    assert {"colorsys", "wave"} <= modules_of(profile, profile.root_pid)
    assert len(profile.processes) == 1
