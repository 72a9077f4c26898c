"""The cache folder: one place for every part, used only if it is this user's, never a reason to fail."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from glowplug.core.disk import cache_files
from glowplug.core.disk.unfinished import PARTIAL

PART = "part"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(cache_files.VARIABLE, str(tmp_path))
    return tmp_path / PART


def _read(name: str = "file") -> bytes | None:
    found = cache_files.open_mapped(PART, name)
    return None if found is None else found[:]


def test_the_variable_then_the_users_cache_then_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/x")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    monkeypatch.setenv(cache_files.VARIABLE, "/mine")
    assert cache_files.location(PART) == "/mine/part"
    monkeypatch.setenv(cache_files.VARIABLE, "here")
    assert cache_files.location(PART) == f"{tmp_path}/here/part"
    monkeypatch.setenv(cache_files.VARIABLE, "")
    assert cache_files.location(PART) == "/xdg/glowplug/part"
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    assert cache_files.location(PART) == "/home/x/.cache/glowplug/part"
    monkeypatch.setenv("HOME", "not/absolute")
    assert cache_files.location(PART) is None


def test_what_is_written_is_read_and_belongs_to_this_user_alone(place: Path) -> None:
    assert _read() is None
    assert cache_files.write(PART, "file", [b"a", memoryview(b"b")])
    assert _read() == b"ab"
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert stat.S_IMODE((place / "file").stat().st_mode) == 0o600
    assert [one.name for one in place.iterdir()] == ["file"]


def _as_file(place: Path) -> None:
    place.write_text("")


def _as_fifo(place: Path) -> None:
    os.mkfifo(place)


def _as_link_to_nothing(place: Path) -> None:
    place.symlink_to(place.parent / "nothing")


def _as_circle(place: Path) -> None:
    place.symlink_to(place)


def _open_to_others(place: Path) -> None:
    place.mkdir()
    place.chmod(0o777)


PLANTED = [_as_file, _as_fifo, _as_link_to_nothing, _as_circle, _open_to_others]


@pytest.mark.parametrize("plant", PLANTED)
def test_a_planted_folder_is_neither_used_nor_an_error(plant: object, place: Path) -> None:
    plant(place)  # type: ignore[operator]
    assert not cache_files.write(PART, "file", [b"x"])
    assert _read() is None
    assert cache_files.folder(PART, create=True) is None
    assert not place.is_dir() or not list(place.iterdir())


def test_a_folder_that_is_open_to_others_is_named_once(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _open_to_others(place)
    for _ in range(3):
        assert cache_files.folder(PART) is None
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert str(place) in said[0]
    assert "mode 777" in said[0]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_what_belongs_to_somebody_else_is_not_used(place: Path) -> None:
    place.mkdir(mode=0o700)
    (place / "file").write_bytes(b"x")
    (place / "file").chmod(0o600)
    assert _read() == b"x"
    os.chown(place / "file", 65534, 65534)
    assert _read() is None
    os.chown(place / "file", 0, 0)
    os.chown(place, 65534, 65534)
    assert _read() is None
    os.chown(place, 0, 0)
    place.rename(place.with_name("real"))
    place.symlink_to("real")
    assert _read() == b"x"
    os.chown(place, 65534, 65534, follow_symlinks=False)
    assert _read() is None


@pytest.mark.parametrize("kind", ["link", "fifo", "folder", "open", "empty"])
def test_a_planted_file_is_not_read_and_can_be_replaced(kind: str, place: Path) -> None:
    place.mkdir(mode=0o700)
    file = place / "file"
    if kind == "link":
        (place / "real").write_bytes(b"x")
        file.symlink_to("real")
    elif kind == "fifo":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    else:
        file.write_bytes(b"x" if kind == "open" else b"")
        file.chmod(0o666)
    assert _read() is None
    assert cache_files.write(PART, "file", [b"y"]) is (kind != "folder")
    assert _read() == (None if kind == "folder" else b"y")


def test_a_place_that_cannot_be_written_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache_files.VARIABLE, "/proc/self/nothing")
    assert not cache_files.write(PART, "file", [b"x"])
    assert _read() is None


def test_what_a_killed_writer_left_is_swept_by_the_next(place: Path) -> None:
    place.mkdir(mode=0o700)
    (place / f".other[1]{PARTIAL}0123").write_bytes(b"half")
    assert cache_files.write(PART, "file", [b"x"])
    assert [one.name for one in place.iterdir()] == ["file"]


def test_reading_imports_nothing_heavy() -> None:
    import subprocess

    code = "import sys; from glowplug.core.disk import cache_files as c; c.open_mapped('p', 'n'); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(Path(cache_files.__file__).parents[3]), "HOME": "/nowhere"},
    )
    assert not {"pathlib", "tempfile", "shutil", "random"} & set(done.stdout.split())
