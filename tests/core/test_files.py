"""Directories change places in one step: whenever the writer is killed, the old or the new one is there, whole."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from glowplug.core import errors
from glowplug.core.disk import files
from glowplug.core.disk.unfinished import DISPLACED

PARTS = ("one", "two", "deep/three")

WRITER = """
import sys
from pathlib import Path
from glowplug.core.disk import files
from glowplug.core.disk.unfinished import DISPLACED

def unsupported(source, target, flags):
    if flags == files._EXCHANGE:
        raise OSError(22, "Invalid argument")
    return rename(source, target, flags)

def write(generation):
    with files.new_directory(Path(sys.argv[1]), force=True, replaceable=lambda folder: True) as directory:
        (directory / "deep").mkdir()
        for part in ("one", "two", "deep/three"):
            (directory / part).write_text(str(generation) * 10_000)

rename = files._rename
if "two steps" in sys.argv:
    files._rename = unsupported
for generation in range(10 ** 9):
    write(generation % 10)
    print("done", flush=True)
    if "once" in sys.argv:
        break
"""

KILLED_IN_BETWEEN = WRITER.replace(
    "for generation",
    """
import os, signal
def kill(self, target):
    moved(self, target)
    if DISPLACED in str(target):
        os.kill(os.getpid(), signal.SIGKILL)
moved, Path.rename = Path.rename, kill
for generation""",
    1,
)


def _writer(path: Path, *how: str, code: str = WRITER) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", code, str(path), *how], stdout=subprocess.PIPE, text=True)


def _is_whole(path: Path) -> bool:
    contents = {(path / part).read_text() for part in PARTS}
    return len(contents) == 1 and len(contents.pop()) == 10_000


def _kill_often(path: Path, times: int, *how: str) -> None:
    chance = random.Random(1)
    with _writer(path, "once"):
        pass
    for _ in range(times):
        with _writer(path, *how) as writer:
            assert writer.stdout is not None
            for _ in range(chance.randrange(1, 5)):
                assert writer.stdout.readline() == "done\n"
            time.sleep(chance.random() / 100)  # somewhere within the next write
            writer.send_signal(signal.SIGKILL)
        files.restore_displaced(path)
        assert _is_whole(path)
    with _writer(path, "once"):
        pass
    assert [one.name for one in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("how", [(), ("two steps",)])
def test_a_writer_may_be_killed_at_any_moment(how: tuple[str, ...], tmp_path: Path) -> None:
    _kill_often(tmp_path / "the [new] one", 4, *how)


@pytest.mark.slow
@pytest.mark.parametrize("how", [(), ("two steps",)])
def test_a_writer_may_be_killed_forty_times(how: tuple[str, ...], tmp_path: Path) -> None:
    _kill_often(tmp_path / "the [new] one", 40, *how)


def test_killed_between_the_two_renames_the_old_one_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with _writer(path, "once"):
        pass
    with _writer(path, "two steps", code=KILLED_IN_BETWEEN) as writer:
        pass
    assert writer.returncode == -signal.SIGKILL
    assert not path.exists()
    assert sum(DISPLACED in one.name for one in tmp_path.iterdir()) == 1
    with pytest.raises(errors.OutputExistsError), files.new_directory(path):
        pass
    assert _is_whole(path)
    with _writer(path, "once"):
        pass
    assert [one.name for one in tmp_path.iterdir()] == ["x"]


def test_a_failure_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.mkdir()
    (path / "kept").write_text("")
    with pytest.raises(ZeroDivisionError), files.new_directory(path, force=True, replaceable=lambda folder: True):
        raise ZeroDivisionError
    assert [one.name for one in tmp_path.rglob("*")] == ["x", "kept"]


@pytest.mark.parametrize("kind", ["folder", "file", "link", "dangling link"])
def test_whatever_has_the_name_is_refused_or_replaced(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "kept").write_text("")
    if kind == "folder":
        path.mkdir()
    elif kind == "file":
        path.write_text("")
    else:
        path.symlink_to("target" if kind == "link" else "nothing")
    with pytest.raises(errors.OutputExistsError), files.new_directory(path):
        pass
    with files.new_directory(path, force=True) as directory:
        (directory / "new").write_text("")
    assert not path.is_symlink()
    assert sorted(one.name for one in tmp_path.rglob("*")) == ["kept", "new", "target", "x"]


def test_a_folder_with_other_things_in_it_is_never_replaced(tmp_path: Path) -> None:
    """Whoever names a home or a project does not mean that, `--force` or not."""
    path = tmp_path / "project"
    (path / "src").mkdir(parents=True)
    (path / "src" / "precious").write_text("x")
    with pytest.raises(errors.OutputExistsError, match="never replaced"), files.new_directory(path, force=True):
        pass
    with pytest.raises(errors.OutputExistsError, match="is a folder"):
        files.write_file(path, b"", force=True)
    assert sorted(one.name for one in tmp_path.rglob("*")) == ["precious", "project", "src"]


def test_what_comes_into_a_folder_meanwhile_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.mkdir()
    with pytest.raises(errors.OutputExistsError), files.new_directory(path, force=True):
        (path / "precious").write_text("x")
    assert [one.name for one in tmp_path.rglob("*")] == ["x", "precious"]


def test_what_appears_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with pytest.raises(errors.OutputExistsError), files.new_directory(path):
        path.mkdir()
    assert [one.name for one in tmp_path.iterdir()] == ["x"]


def test_a_reader_that_has_the_old_one_open_keeps_it(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.mkdir()
    (path / "file").write_text("old")
    with (path / "file").open() as stream:
        with files.new_directory(path, force=True, replaceable=lambda folder: True) as directory:
            (directory / "file").write_text("new")
        assert stream.read() == "old"
    assert (path / "file").read_text() == "new"


def test_modes_follow_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with files.new_directory(tmp_path / "x"):
            pass
        files.write_file(tmp_path / "y", b"")
        files.write_file(tmp_path / "z", b"", mode=0o600)
    finally:
        os.umask(before)
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in "xyz"] == [0o750, 0o640, 0o600]


def test_what_cannot_be_written_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "x", Path("/proc/x")):
        with pytest.raises(errors.StorageError):
            files.write_file(path, b"")
        with pytest.raises(errors.StorageError), files.new_directory(path):
            pass


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/null")])
def test_a_device_or_a_pipe_is_never_replaced(make, tmp_path):
    """Whoever names /dev/null or /dev/stdout does not mean that, and root could do it."""
    path = tmp_path / "out"
    make(path)
    before = path.lstat()
    with pytest.raises(errors.OutputExistsError, match="a device, a pipe or a socket"):
        files.write_file(path, b"x", force=True)
    assert path.lstat().st_mode == before.st_mode
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_that_leads_nowhere_is_replaced(tmp_path):
    (tmp_path / "out").symlink_to(tmp_path / "none")
    files.write_file(tmp_path / "out", b"x", force=True)
    assert (tmp_path / "out").read_bytes() == b"x"


def test_what_the_system_refuses_comes_with_a_remedy(tmp_path):
    with pytest.raises(errors.StorageError, match=r"none/out \(No such file or directory\); make its folder first"):
        files.write_file(tmp_path / "none" / "out", b"x")
