"""Records of touched ranges: written, read, and ignored where they are damaged or out of date."""

from __future__ import annotations

import json
import mmap

import pytest

from glowplug.imports import prefetch, private, touched
from glowplug.imports.touched import FileRanges, coalesce


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GLOWPLUG_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "imports"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "library.so"
    path.write_bytes(bytes(mmap.PAGESIZE * 64))
    return path


def test_pages_become_ranges():
    page = mmap.PAGESIZE
    assert coalesce([3, 1, 2]) == [(page, 3 * page)]
    assert coalesce([0, 1000]) == [(0, page), (1000 * page, page)]
    assert coalesce([]) == []


def test_a_record_is_read_back(file):
    one = touched.describe(str(file), [(0, 4096), (65536, 4096)])
    assert prefetch.write_record([one])
    assert prefetch.read_record() == [one]


def test_a_changed_or_missing_file_is_left_out(file, tmp_path):
    gone = FileRanges(str(tmp_path / "gone"), 1, 1, ((0, 1),))
    one = touched.describe(str(file))
    prefetch.write_record([one, gone])
    assert prefetch.read_record() == [one]
    file.write_bytes(b"other")
    assert prefetch.read_record() == []


@pytest.mark.parametrize(
    "data",
    [
        b"{",
        b"[]",
        b'{"version": 2, "files": []}',
        b'{"version": 1}',
        b'{"version": 1, "files": [["x"]]}',
        b'{"version": 1, "files": [["x", 1, 1, [["a", 1]]]]}',
        b'{"version": 1, "files": 7}',
    ],
)
def test_a_damaged_record_is_ignored(data):
    private.write(prefetch.record_name(), [data])
    assert prefetch.read_record() == []


def test_ranges_outside_the_file_are_ignored(file):
    one = touched.describe(str(file))
    for ranges in (((-1, 5),), ((0, -1),), ((0, one.size + 1),)):
        private.write(
            prefetch.record_name(), [json.dumps({"version": 1, "files": [one._replace(ranges=ranges)]}).encode()]
        )
        assert prefetch.read_record() == []


def test_touched_pages_of_a_mapping_are_seen(file):
    with file.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        mapped.madvise(mmap.MADV_RANDOM)  # or the kernel maps the pages around the touched one as well
        _ = mapped[40 * mmap.PAGESIZE]
        found = [one for one in touched.mapped_files() if one.path == str(file)]
    assert len(found) == 1
    assert any(at <= 40 * mmap.PAGESIZE < at + length for at, length in found[0].ranges)
