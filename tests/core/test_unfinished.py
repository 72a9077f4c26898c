"""What is being written is known by a lock that the kernel releases, not by a process number."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from glowplug.core.disk import unfinished
from glowplug.core.disk.unfinished import PARTIAL, leftovers, new_file, new_folder, sweep

NAMES = ["plain", "with [brackets] and *", "ü" * 90, ".hidden", "a b\nc"]

WRITER = """
import os, signal, sys
from glowplug.core.disk import unfinished
made = getattr(unfinished, sys.argv[1])(sys.argv[2])
with made if sys.argv[1] == "new_file" else open("/dev/null"):
    print("ready", flush=True)
    signal.pause()
"""


@pytest.mark.parametrize("name", NAMES)
def test_a_file_appears_whole_or_not_at_all(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    with new_file(str(path)) as stream:
        stream.write(b"new")
        stream.flush()
        assert not path.exists()
        assert leftovers(str(tmp_path), PARTIAL) == []
        sweep(str(tmp_path))
    assert path.read_bytes() == b"new"
    with pytest.raises(ZeroDivisionError), new_file(str(path)):
        raise ZeroDivisionError
    assert [one.name for one in tmp_path.iterdir()] == [name]
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["new_file", "new_folder"])
def test_what_a_killed_writer_left_is_swept_at_once_and_what_a_living_one_has_is_not(
    name: str, kind: str, tmp_path: Path
) -> None:
    path = str(tmp_path / name)
    with subprocess.Popen([sys.executable, "-c", WRITER, kind, path], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        sweep(str(tmp_path), name)
        assert len(list(tmp_path.iterdir())) == 1
        writer.send_signal(signal.SIGKILL)
        writer.wait()
    sweep(str(tmp_path), "other")
    assert len(list(tmp_path.iterdir())) == 1
    sweep(str(tmp_path), name)
    assert list(tmp_path.iterdir()) == []


def test_a_name_within_a_name_is_another_one(tmp_path: Path) -> None:
    (tmp_path / f".a.b{PARTIAL}00").mkdir()
    sweep(str(tmp_path), "b")
    assert len(list(tmp_path.iterdir())) == 1


def test_links_and_pipes_with_such_names_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / f".x{PARTIAL}00").symlink_to("kept")
    os.mkfifo(tmp_path / f".x{PARTIAL}01")
    sweep(str(tmp_path))
    assert len(list(tmp_path.iterdir())) == 3


def test_a_sweeper_that_comes_before_the_lock_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claim, made = unfinished._claim, []

    def late(descriptor: int, path: str) -> bool:
        made.append(path)
        if len(made) == 1:
            sweep(str(tmp_path))
        return claim(descriptor, path)

    monkeypatch.setattr(unfinished, "_claim", late)
    with new_file(str(tmp_path / "x")) as stream:
        stream.write(b"1")
    folder, lock = new_folder(str(tmp_path / "y"))
    sweep(str(tmp_path))
    assert Path(folder).is_dir()
    os.close(lock)
    assert len(made) == 3
    assert (tmp_path / "x").read_bytes() == b"1"


def test_without_locks_age_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(unfinished.errno.EOPNOTSUPP, "no locks here")

    monkeypatch.setattr(unfinished.fcntl, "flock", refuse)
    old, new = (tmp_path / f".x{PARTIAL}{number}" for number in (1, 2))
    for path in (old, new):
        path.mkdir()
    os.utime(old, (0, time.time() - 2 * 24 * 3600))
    sweep(str(tmp_path))
    assert list(tmp_path.iterdir()) == [new]
    with new_file(str(tmp_path / "file")) as stream:
        stream.write(b"1")
    assert (tmp_path / "file").read_bytes() == b"1"
