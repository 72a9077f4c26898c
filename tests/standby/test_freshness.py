"""A preloaded module that has changed on the disk is never seen old, however it was changed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CODE = "import fresh_package; print(fresh_package.VALUE)"


@pytest.fixture
def packages(standby, tmp_path):
    """A folder on the path, reached through a link, with a package of two files."""
    release = tmp_path / "release-1"
    package = release / "fresh_package"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("from .inner import VALUE\n")
    (package / "inner.py").write_text("VALUE = 1\n")
    (tmp_path / "current").symlink_to(release)
    standby.environment["PYTHONPATH"] += f"{os.pathsep}{tmp_path / 'current'}"
    (tmp_path / "work").mkdir()
    standby.scripts = tmp_path / "work"
    assert value(standby) == "1\n"
    return tmp_path


def value(standby) -> str:
    """Return what a program sees, from the standby or, where that declines, from a plain start."""
    done = standby.run("-c", CODE, preload="fresh_package", start=False)
    if done.returncode == 0:
        return done.stdout
    if "no standby runs" in done.stderr:
        return str(standby.run("-c", CODE, preload="fresh_package").stdout)
    assert "the standby reloads" in done.stderr or "the standby went away" in done.stderr, done.stderr
    return str(
        subprocess.run([sys.executable, "-c", CODE], env=standby.environment, capture_output=True, text=True).stdout
    )


def edit_in_place(folder: Path) -> None:
    with (folder / "release-1/fresh_package/inner.py").open("r+") as stream:
        stream.write("VALUE = 2\n")


def edit_and_hide_it(folder: Path) -> None:
    """Same size, same times, same file."""
    path = folder / "release-1/fresh_package/inner.py"
    before = path.stat()
    edit_in_place(folder)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    shutil.rmtree(folder / "release-1/fresh_package/__pycache__", ignore_errors=True)


def replace(folder: Path) -> None:
    path = folder / "release-1/fresh_package/inner.py"
    (folder / "new").write_text("VALUE = 2\n")
    (folder / "new").rename(path)
    shutil.rmtree(path.parent / "__pycache__", ignore_errors=True)


def edit_by_another_name(folder: Path) -> None:
    os.link(folder / "release-1/fresh_package/inner.py", folder / "other-name")
    with (folder / "other-name").open("r+") as stream:
        stream.write("VALUE = 2\n")
    shutil.rmtree(folder / "release-1/fresh_package/__pycache__", ignore_errors=True)


def switch_the_link(folder: Path) -> None:
    shutil.copytree(folder / "release-1", folder / "release-2", ignore=lambda *_: ["__pycache__"])
    (folder / "release-2/fresh_package/inner.py").write_text("VALUE = 2\n")
    (folder / "next").symlink_to(folder / "release-2")
    (folder / "next").rename(folder / "current")


def exchange_the_package(folder: Path) -> None:
    shutil.copytree(folder / "release-1/fresh_package", folder / "copy", ignore=lambda *_: ["__pycache__"])
    (folder / "copy/inner.py").write_text("VALUE = 2\n")
    (folder / "release-1/fresh_package").rename(folder / "old")
    (folder / "copy").rename(folder / "release-1/fresh_package")


@pytest.mark.parametrize(
    "change",
    [edit_in_place, edit_and_hide_it, replace, edit_by_another_name, switch_the_link, exchange_the_package],
)
def test_a_change_is_seen_by_the_next_program(standby, packages, change):
    change(packages)
    shutil.rmtree(packages / "current/fresh_package/__pycache__", ignore_errors=True)
    assert value(standby) == "2\n"


def test_where_the_kernel_cannot_report_each_request_looks(packages, monkeypatch):
    """The same object, in this process, without notices."""
    import importlib
    import time

    from glowplug.standby.server import freshness

    monkeypatch.syspath_prepend(str(packages / "current"))
    module = importlib.import_module("fresh_package.inner")
    monkeypatch.setattr(freshness, "_local_devices", set)
    fresh = freshness.Freshness([module], time.time_ns())
    assert fresh._reports is None
    assert fresh.problem() is None
    edit_in_place(packages)
    assert "inner.py has changed" in fresh.problem()
    assert "inner.py has changed" in fresh.problem()
    del sys.modules["fresh_package"], sys.modules["fresh_package.inner"]


def test_a_file_that_changes_while_it_is_imported_makes_no_standby(standby, tmp_path):
    (tmp_path / "restless.py").write_text("import os\nos.utime(__file__)\n")
    standby.environment["PYTHONPATH"] += f"{os.pathsep}{tmp_path}"
    (tmp_path / "work").mkdir()
    standby.scripts = tmp_path / "work"
    done = standby.run("-c", "pass", preload="restless")
    assert "restless.py has changed meanwhile" in done.stderr
    assert standby.pids() == []


def test_all_who_are_waiting_when_it_is_found_old_are_told(standby, packages):
    """The second of two requests that came together was answered from the old modules."""
    from concurrent.futures import ThreadPoolExecutor

    edit_in_place(packages)
    shutil.rmtree(packages / "current/fresh_package/__pycache__", ignore_errors=True)
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(lambda _: value(standby), range(4))) == {"2\n"}
