"""The stamp of installed packages: the same as long as the code on the disk is, another as soon as it is not."""

from __future__ import annotations

import importlib
import importlib.util
import os
import py_compile
import shutil
import sys
import types
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from glowplug.core.disk import cache_files, installed
from glowplug.core.disk.installed import read_installed

NAME = "stamped_package"


@pytest.fixture(autouse=True)
def _own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(cache_files.VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(installed, "_SETTLED_NS", -(10**12))  # files of a test are younger than what counts as settled
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith(NAME):
            del sys.modules[name]
    importlib.invalidate_caches()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site"
    package = folder / NAME
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "inner" / "__init__.py").write_text("")
    (package / "inner" / "used.py").write_text("VALUE = 1\n")
    (package / "inner" / "unused.py").write_text("VALUE = 1\n")
    (package / "lib.so.2").write_bytes(b"library" * 10_000)
    monkeypatch.syspath_prepend(str(folder))
    return folder


def _load(name: str = f"{NAME}.inner.used") -> types.ModuleType:
    importlib.invalidate_caches()
    return importlib.import_module(name)


def _edit(path: Path, data: bytes) -> None:
    """Change a file in place and set its times back, as far as a user can."""
    before = path.stat()
    with path.open("r+b") as stream:
        stream.write(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_second_look_reads_nothing(site: Path) -> None:
    _load()
    first = read_installed([NAME])
    assert first.read_again == 4
    assert read_installed([NAME]) == installed.Installed(first.digests)


def test_a_source_that_was_edited_in_place_is_noticed_even_with_its_old_time_and_size(site: Path) -> None:
    _load()
    first = read_installed([NAME])
    _edit(site / NAME / "inner" / "used.py", b"VALUE = 2\n")
    second = read_installed([NAME])
    assert second.digests != first.digests
    assert second.read_again == 1
    assert second.newest_ns > installed.process_began_ns()
    _edit(site / NAME / "inner" / "used.py", b"VALUE = 1\n")
    assert read_installed([NAME]).digests == first.digests


def test_another_link_to_a_file_is_no_change(site: Path, tmp_path: Path) -> None:
    _load()
    first = read_installed([NAME])
    os.link(site / NAME / "inner" / "used.py", tmp_path / "another name")
    assert read_installed([NAME]) == installed.Installed(first.digests, read_again=1, newest_ns=0)


def test_what_was_never_loaded_counts_from_when_it_is(site: Path) -> None:
    _load()
    first = read_installed([NAME]).digests
    _edit(site / NAME / "inner" / "unused.py", b"VALUE = 2\n")
    _load(f"{NAME}.inner.unused")
    assert read_installed([NAME]).digests != first


def test_what_was_loaded_once_is_looked_at_in_processes_that_have_not_loaded_it_yet(site: Path) -> None:
    _load()
    first = read_installed([NAME]).digests
    for name in [name for name in sys.modules if name.startswith(NAME)]:
        del sys.modules[name]
    assert read_installed([NAME]).digests == first
    _edit(site / NAME / "inner" / "used.py", b"VALUE = 2\n")
    assert read_installed([NAME]).digests != first


def test_a_file_that_would_be_found_first_is_noticed(site: Path) -> None:
    _load()
    first = read_installed([NAME]).digests
    (site / NAME / "inner" / "used.cpython-311-x86_64-linux-gnu.so").write_bytes(b"\x7fELF")
    second = read_installed([NAME]).digests
    assert second != first
    (site / NAME / "inner" / "used").mkdir()
    (site / NAME / "inner" / "used" / "__init__.py").write_text("VALUE = 3\n")
    assert read_installed([NAME]).digests not in (first, second)


def test_bytecode_that_changed_without_its_source_is_noticed(site: Path) -> None:
    cached = Path(_load().__cached__)
    first = read_installed([NAME]).digests
    data = bytearray(cached.read_bytes())
    data[-1] ^= 1
    _edit(cached, bytes(data))
    second = read_installed([NAME])
    assert second.digests != first
    assert read_installed([NAME]).digests == second.digests


def test_bytecode_that_was_made_anew_from_the_same_source_changes_nothing(site: Path) -> None:
    module = _load()
    first = read_installed([NAME]).digests
    source = Path(str(module.__file__))
    os.utime(source, ns=(1, 1_000_000_000))
    py_compile.compile(str(source))
    assert read_installed([NAME]).digests == first


def test_bytecode_that_comes_later_changes_nothing(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    module = _load()
    first = read_installed([NAME]).digests
    py_compile.compile(str(module.__file__))
    assert Path(module.__cached__).exists()
    assert read_installed([NAME]).digests == first


def test_bytecode_of_an_edited_source_is_not_counted_twice(site: Path) -> None:
    module = _load()
    first = read_installed([NAME]).digests
    source = Path(str(module.__file__))
    source.write_text("VALUE = 22\n")
    py_compile.compile(str(source))
    assert read_installed([NAME]).digests != first
    source.write_text("VALUE = 1\n")
    py_compile.compile(str(source))
    assert read_installed([NAME]).digests == first


def test_a_library_counts_by_its_head_until_it_changes(site: Path) -> None:
    library = site / NAME / "lib.so.2"
    first = read_installed([NAME]).digests
    os.link(library, site / "another name")
    assert read_installed([NAME]).digests == first
    with library.open("r+b") as stream:
        stream.seek(60_000)
        stream.write(b"!")
    second = read_installed([NAME]).digests
    assert second != first
    assert read_installed([NAME]).digests == second


def test_equal_installations_have_equal_stamps(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = read_installed([NAME]).digests
    shutil.copytree(site, tmp_path / "elsewhere")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "elsewhere"), *sys.path])
    importlib.invalidate_caches()
    assert read_installed([NAME]).digests == first


def test_a_linked_package_is_followed_and_a_circle_is_not(site: Path, tmp_path: Path) -> None:
    (site / NAME).rename(tmp_path / "checkout")
    (site / NAME).symlink_to(tmp_path / "checkout")
    (tmp_path / "checkout" / "inner" / "back").symlink_to(tmp_path / "checkout")
    _load()
    first = read_installed([NAME]).digests
    _edit(tmp_path / "checkout" / "inner" / "used.py", b"VALUE = 2\n")
    assert read_installed([NAME]).digests != first


def test_a_part_of_a_namespace(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):
        folder = tmp_path / name / f"{NAME}_space" / name
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text("VALUE = 1\n")
        monkeypatch.syspath_prepend(str(tmp_path / name))
    importlib.invalidate_caches()
    whole, part = read_installed([f"{NAME}_space"]), read_installed([f"{NAME}_space.one"])
    assert (whole.read_again, part.read_again) == (2, 1)
    _load(f"{NAME}_space.two")
    _edit(tmp_path / "two" / f"{NAME}_space" / "two" / "__init__.py", b"VALUE = 2\n")
    assert read_installed([f"{NAME}_space.one"]).digests == part.digests
    assert read_installed([f"{NAME}_space"]).digests != whole.digests


def test_single_modules_and_zip_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / f"{NAME}_alone.py").write_text("VALUE = 1\n")
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as archive:
        archive.writestr(f"{NAME}_zipped/__init__.py", "VALUE = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path / "packed.zip"))
    for name in (f"{NAME}_alone", f"{NAME}_zipped"):
        _load(name)
        first = read_installed([name])
        assert first.read_again == 1
        assert read_installed([name]) == installed.Installed(first.digests)
    with zipfile.ZipFile(tmp_path / "packed.zip", "a") as archive:
        archive.writestr(f"{NAME}_zipped/more.py", "VALUE = 2\n")
    (tmp_path / f"{NAME}_alone.py").write_text("VALUE = 2\n")
    assert read_installed([f"{NAME}_alone"]).read_again == 1


def test_a_module_that_loads_itself_is_not_woken(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Lazy(types.ModuleType):
        def __getattribute__(self, name: str) -> object:
            raise AssertionError(name)

    monkeypatch.setitem(sys.modules, f"{NAME}_lazy", Lazy("lazy"))
    monkeypatch.setitem(sys.modules, f"{NAME}_odd", 5)  # type: ignore[arg-type]
    read_installed([NAME, f"{NAME}_lazy", f"{NAME}_odd", "no_such_package", "no_such.package"])


def test_without_a_cache_and_with_a_damaged_table_the_stamp_is_the_same(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = read_installed([NAME]).digests
    for table in (tmp_path / "cache" / "installed").iterdir():
        table.write_bytes(b"\0" * 10 + table.read_bytes())
    assert read_installed([NAME]).digests == first
    monkeypatch.setenv(cache_files.VARIABLE, "/proc/no/such/place")
    assert read_installed([NAME]).digests == first


def test_what_is_too_fresh_is_read_again(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "_SETTLED_NS", 10**12)
    _load()
    assert read_installed([NAME]).read_again == read_installed([NAME]).read_again == 4
