"""The archive gives back the code that was put in, and nothing that is stale, damaged or somebody else's."""

from __future__ import annotations

import importlib
import marshal
import os
import sys

import pytest

from glowplug.imports import private
from glowplug.imports.bytecode import archive, collect, finder
from glowplug.imports.bytecode.archive import Row

IDENTITY = ("tag", "0")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GLOWPLUG_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "imports"


@pytest.fixture
def module(tmp_path):
    folder = tmp_path / "modules"
    folder.mkdir()
    path = folder / "glowplug_test_module.py"
    path.write_text("value = 'file'\n")
    return path


def write(module, source="value = 'archive'\n", identity=IDENTITY):
    found = module.stat()
    row = Row(
        module.stem, str(module), False, found.st_mtime_ns, found.st_ctime_ns, found.st_size, True, False, 0, 0, 0
    )
    piece = marshal.dumps(compile(source, str(module), "exec"))
    folders = {str(module.parent): module.parent.stat().st_mtime_ns}
    assert archive.write("test.code", identity, folders, [(row, piece)])


def load(module, monkeypatch):
    opened = archive.read("test.code", IDENTITY)
    assert opened is not None
    monkeypatch.syspath_prepend(str(module.parent))
    sys.path_importer_cache.pop(str(module.parent), None)
    archived = finder.ArchivedCode(opened)
    finder.install(archived)
    try:
        return importlib.import_module(module.stem), archived
    finally:
        sys.modules.pop(module.stem, None)
        sys.path_importer_cache.pop(str(module.parent), None)


def test_a_module_comes_from_the_archive_and_looks_like_any_other(module, monkeypatch):
    write(module)
    loaded, archived = load(module, monkeypatch)
    assert loaded.value == "archive"
    assert archived.served == 1
    assert loaded.__file__ == loaded.__spec__.origin == str(module)
    assert loaded.__spec__.cached == loaded.__cached__ == importlib.util.cache_from_source(str(module))
    assert loaded.__loader__.get_source(module.stem) == "value = 'file'\n"


def test_code_unpacked_ahead_is_the_same(module, monkeypatch):
    write(module)
    opened = archive.read("test.code", IDENTITY)
    archived = finder.ArchivedCode(opened)
    assert archived.unpack_next(lambda: False) == 0
    assert archived.unpack_next(lambda: True) == 1
    (row,) = opened
    names: dict[str, object] = {}
    exec(archived.code(row), names)
    assert names["value"] == "archive"


def test_a_changed_source_is_read_from_its_file(module, monkeypatch):
    write(module)
    module.write_text("value = 'changed'\n")
    loaded, archived = load(module, monkeypatch)
    assert loaded.value == "changed"
    assert archived.served == 0


def test_a_source_that_was_changed_in_place_and_looks_the_same_is_read(module, monkeypatch):
    write(module)
    looked = module.stat()
    module.write_text("value = 'edit'\n")
    os.utime(module, ns=(looked.st_atime_ns, looked.st_mtime_ns))
    assert (module.stat().st_size, module.stat().st_mtime_ns) == (looked.st_size, looked.st_mtime_ns)
    loaded, archived = load(module, monkeypatch)
    assert archived.served == 0
    assert loaded.value in ("edit", "file")  # as Python reads it, which trusts its own bytecode


def test_a_changed_folder_is_searched_anew(module, monkeypatch):
    write(module)
    package = module.parent / module.stem
    package.mkdir()
    (package / "__init__.py").write_text("value = 'package'\n")
    assert load(module, monkeypatch)[0].value == "package"


def test_a_damaged_piece_is_not_loaded(module, monkeypatch, cache):
    write(module)
    path = cache / "test.code"
    data = bytearray(path.read_bytes())
    data[-1] ^= 0xFF
    path.write_bytes(data)
    assert load(module, monkeypatch)[0].value == "file"


@pytest.mark.parametrize("at", [0, 9, 13, 30])
def test_a_damaged_index_is_no_archive(module, cache, at):
    write(module)
    path = cache / "test.code"
    data = bytearray(path.read_bytes())
    data[at] ^= 0xFF
    path.write_bytes(data)
    assert archive.read("test.code", IDENTITY) is None
    path.write_bytes(bytes(data[:at]))
    assert archive.read("test.code", IDENTITY) is None


def test_an_archive_of_another_interpreter_is_not_used(module):
    write(module, identity=("another", "0"))
    assert archive.read("test.code", IDENTITY) is None


def test_what_others_can_write_is_not_used(module, cache):
    write(module)
    (cache / "test.code").chmod(0o666)
    assert private.open_mapped("test.code") is None
    (cache / "test.code").chmod(0o600)
    assert private.open_mapped("test.code") is not None
    cache.chmod(0o777)
    assert private.open_mapped("test.code") is None
    assert not private.write("other", [b"x"])
    cache.chmod(0o700)


def test_a_link_is_not_followed(module, cache, tmp_path):
    write(module)
    (cache / "test.code").rename(tmp_path / "elsewhere")
    (cache / "test.code").symlink_to(tmp_path / "elsewhere")
    assert private.open_mapped("test.code") is None


def test_an_archive_of_this_process_holds_what_it_loaded():
    import json.decoder

    assert collect.update(None, frozenset({"json"}), {})
    made = archive.read(collect.archive_name(), collect.identity())
    row = made.row("json.decoder")
    assert row is not None
    assert not row.early
    assert made.row("json").early
    assert made.row("json").is_package
    assert made.code(row).co_filename == json.decoder.__file__
    assert collect.update(made, frozenset(), {}) == 0
