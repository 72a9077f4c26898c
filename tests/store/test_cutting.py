"""Where files are cut: chunks are bounded, cover everything, and a changed part changes its chunk alone."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from glowplug.store.cutting import LARGEST_BYTES, cut, joined_bytes

MB = 1 << 20


@given(st.integers(0, 200 * MB), st.lists(st.integers(-5, 210 * MB), max_size=30))
def test_chunks_cover_the_file_once_and_are_bounded(size, boundaries):
    spans = cut(size, boundaries)
    assert [start for start, _ in spans] == [0, *(end for _, end in spans[:-1])] if spans else size == 0
    assert not spans or spans[-1][1] == size
    assert all(0 < end - start <= LARGEST_BYTES for start, end in spans)


def test_an_empty_file_has_no_chunks():
    assert cut(0, [0]) == []


def test_a_large_part_is_cut_into_equal_pieces_and_begins_a_chunk():
    assert cut(8 * MB, [MB // 4, MB // 2, 7 * MB + MB // 2]) == [
        (0, MB // 2),
        *pairwise([MB // 2 + 7 * MB * n // 4 for n in range(5)]),
        (7 * MB + MB // 2, 8 * MB),
    ]


def test_small_parts_are_joined_up_to_a_share_of_the_file():
    for size, joined in ((10, 1), (100, 1), (200, 2), (434, 4), (800, 8), (9000, 8)):
        assert joined_bytes(size * MB) == joined * MB
        spans = cut(size * MB, range(0, size * MB, MB // 2))
        assert {end - start for start, end in spans[:-1]} == {joined * MB}


def test_parts_behind_a_large_one_are_cut_alike_when_one_before_it_grows():
    def digestible(first: int) -> list[int]:
        offsets = [0, first, first + 3 * MB, first + 13 * MB, first + 14 * MB]
        return [end - start for start, end in cut(first + 30 * MB, offsets)]

    assert digestible(2 * MB)[-3:] == digestible(5 * MB)[-3:]
