"""Only ordinary files are opened, and nothing waits."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from glowplug.core.disk.regular_files import LeavesFolderError, NotRegularError, OpenFolder, open_regular, read_regular


def make(kind: str, path: Path) -> None:
    """Put something at `path` that is no ordinary file."""
    if kind == "named pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "link to a named pipe":
        os.mkfifo(path.with_name("pipe"))
        path.symlink_to("pipe")
    else:
        here = Path.cwd()
        os.chdir(path.parent)  # the name of a socket has 108 bytes at most
        try:
            socket.socket(socket.AF_UNIX).bind(path.name)
        finally:
            os.chdir(here)


KINDS = ["named pipe", "folder", "device", "socket", "link to a named pipe"]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_file_is_refused_by_name(kind: str, tmp_path: Path) -> None:
    make(kind, tmp_path / "x")
    with pytest.raises(NotRegularError) as caught:
        open_regular(tmp_path / "x")
    assert kind.removeprefix("link to a ") in str(caught.value.strerror)
    with pytest.raises((NotRegularError, LeavesFolderError)):
        OpenFolder(tmp_path).open("x")


def test_reading_ends_at_the_limit(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"12345")
    assert read_regular(tmp_path / "x", 5) == b"12345"
    with pytest.raises(OSError, match="larger than 4 bytes"):
        read_regular(tmp_path / "x", 4)
    with (tmp_path / "sparse").open("wb") as stream:
        stream.truncate(1 << 40)
    with pytest.raises(OSError, match="larger"):
        read_regular(tmp_path / "sparse", 1 << 20)
    with pytest.raises(FileNotFoundError):
        open_regular(tmp_path / "nothing")


def test_a_folder_stays_the_same_under_another_name(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        (folder / "deep").mkdir(parents=True)
        (folder / "deep" / "x").write_text(folder.name)
    opened = OpenFolder(one)
    one.rename(tmp_path / "old")
    two.rename(one)
    with os.fdopen(opened.open("deep/x")) as stream:
        assert stream.read() == "one"
    assert Path(opened.path, "deep", "x").read_text() == "one"
    (tmp_path / "old" / "deep" / "x").unlink()
    with pytest.raises(FileNotFoundError):
        opened.open("deep/x")


def test_links_are_followed_within(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "x").write_text("inside")
    (folder / "link").symlink_to("x")
    (folder / "out").symlink_to("../secret")
    (tmp_path / "secret").write_text("")
    (tmp_path / "folder2").mkdir()
    (tmp_path / "folder2" / "x").write_text("")
    (folder / "neighbour").symlink_to("../folder2/x")
    opened = OpenFolder(folder)
    with os.fdopen(opened.open("link")) as stream:
        assert stream.read() == "inside"
    for name in ("out", "neighbour", "../secret", str(tmp_path / "secret")):
        with pytest.raises(LeavesFolderError):
            opened.open(name)


def test_descriptors_are_given_back(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        os.close(OpenFolder(tmp_path).open("x"))
        with pytest.raises(FileNotFoundError):
            OpenFolder(tmp_path / "nothing")
    assert len(list(Path("/proc/self/fd").iterdir())) == before
