"""Files are read ahead where they are not in memory yet."""

from __future__ import annotations

import os
import threading

import pytest

from glowplug.core.disk import read_ahead


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(os.urandom(5 << 20))
    return path


def test_pieces_cover_their_ranges():
    size = 2 * read_ahead.PIECE_BYTES + 5
    assert list(read_ahead.pieces("f", [(0, size), (7, 1)])) == [
        ("f", 0, read_ahead.PIECE_BYTES),
        ("f", read_ahead.PIECE_BYTES, read_ahead.PIECE_BYTES),
        ("f", 2 * read_ahead.PIECE_BYTES, 5),
        ("f", 7, 1),
    ]


def test_nothing_is_asked_for_that_is_there(file):
    file.read_bytes()
    pieces = list(read_ahead.pieces(str(file), [(0, file.stat().st_size)]))
    if not read_ahead.are_cached(pieces):
        pytest.skip("this file system does not say what is in memory")
    assert not read_ahead.start(pieces)
    assert not read_ahead.start([])
    assert read_ahead.start([("/nonexistent", 0, 1)])


def test_threads_read_everything_that_is_asked_for(file):
    queue = iter([*list(read_ahead.pieces(str(file), [(0, file.stat().st_size)])), ("/nonexistent", 0, 1)])
    read_ahead._read_ahead(queue, threading.Lock())
    assert next(queue, None) is None


def test_samples_tell_whether_the_page_cache_has_the_files(file):
    pieces = list(read_ahead.pieces(str(file), [(0, file.stat().st_size)]))
    file.read_bytes()
    assert read_ahead.are_cached(pieces)
    assert not read_ahead.are_cached([*pieces, ("/nonexistent", 0, 1)])
    with file.open("rb") as stream:
        os.fsync(stream.fileno())
        os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        try:
            os.preadv(stream.fileno(), [bytearray(1)], 0, os.RWF_NOWAIT)
        except BlockingIOError:
            file.read_bytes()  # the attempt began to read ahead, which would end whenever it likes
            os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            assert not read_ahead.are_cached(pieces)
        else:
            pytest.skip("this file system keeps its pages")
