"""A seal counts for bundles that this user packed and that nobody else can change."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from glowplug.bundle.reader import open_bundle
from glowplug.bundle.seal import distrust, is_sealed_here, seal
from glowplug.bundle.writer import BundleWriter


@pytest.fixture
def sealed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    directory = tmp_path / "bundle"
    directory.mkdir()
    before = os.umask(0o002)  # where each user has a group of their own
    try:
        with BundleWriter(directory) as writer:
            for name in ("saved_model.pb", "variables/variables.index"):
                writer.add_file(f"saved_model/{name}", name.encode())
            writer.finish(engine="savedmodel", signatures={})
        seal(directory)
    finally:
        os.umask(before)
    return directory


def _reason(directory: Path) -> str:
    bundle = open_bundle(directory)
    reason = distrust(bundle, bundle.open_folder("saved_model/"))
    assert is_sealed_here(bundle) is not bool(reason)
    return reason


def test_what_was_packed_here_is_trusted_wherever_it_is_moved(sealed: Path, tmp_path: Path) -> None:
    assert _reason(sealed) == ""
    shutil.copytree(sealed, tmp_path / "copy")
    assert _reason(tmp_path / "copy") == ""


def _add_a_file(directory: Path) -> None:
    (directory / "saved_model" / "saved_model.cpb").write_bytes(b"")


def _add_deep(directory: Path) -> None:
    (directory / "saved_model" / "variables" / "more").mkdir(mode=0o700)
    (directory / "saved_model" / "variables" / "more" / "x").write_bytes(b"")


def _open_a_file(directory: Path) -> None:
    (directory / "saved_model" / "saved_model.pb").chmod(0o664)


def _open_a_folder(directory: Path) -> None:
    (directory / "saved_model" / "variables").chmod(0o777)


def _open_the_top(directory: Path) -> None:
    (directory / "saved_model").chmod(0o775)


def _link(directory: Path) -> None:
    file = directory / "saved_model" / "saved_model.pb"
    file.rename(directory / "elsewhere")
    file.symlink_to("../elsewhere")


def _link_a_folder(directory: Path) -> None:
    folder = directory / "saved_model" / "variables"
    folder.rename(directory / "elsewhere")
    folder.symlink_to("../elsewhere")


def _another_seal(directory: Path) -> None:
    (directory / "bundle.seal").write_bytes(b"0" * 64)


def _no_seal(directory: Path) -> None:
    (directory / "bundle.seal").unlink()


def _pipe_for_a_seal(directory: Path) -> None:
    _no_seal(directory)
    os.mkfifo(directory / "bundle.seal")


CHANGES = {
    _add_a_file: "saved_model/saved_model.cpb was not packed with it",
    _add_deep: "saved_model/variables/more/x was not packed with it",
    _open_a_file: "other users can change saved_model/saved_model.pb",
    _open_a_folder: "other users can change saved_model/variables",
    _open_the_top: "other users can change saved_model",
    _link: "saved_model/saved_model.pb is a link",
    _link_a_folder: "saved_model/variables was not packed with it",
    _another_seal: "you did not pack this one",
    _no_seal: "you did not pack this one",
    _pipe_for_a_seal: "you did not pack this one",
}


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_what_others_could_have_changed_is_not(change: Callable[[Path], None], sealed: Path) -> None:
    change(sealed)
    assert _reason(sealed) == CHANGES[change]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_what_belongs_to_somebody_else_is_not(sealed: Path) -> None:
    os.chown(sealed / "saved_model" / "variables" / "variables.index", 65534, 65534)
    assert _reason(sealed) == "other users can change saved_model/variables/variables.index"


def test_another_key_does_not_vouch_for_it(sealed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = tmp_path / "state" / "glowplug" / "pack-key"
    key.chmod(0o644)
    assert _reason(sealed) == "you did not pack this one"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another"))
    assert _reason(sealed) == "you did not pack this one"


@pytest.mark.parametrize("home", ["not/absolute", "/proc/nothing"])
def test_a_user_without_a_home_packs_all_the_same(
    home: str, sealed: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", home)
    (sealed / "bundle.seal").unlink()
    before = sorted(tmp_path.rglob("*"))
    seal(sealed)
    assert sorted(tmp_path.rglob("*")) == before
    assert _reason(sealed) == "you did not pack this one"
