"""Pages that were written to after a fork are found, and those of a list are copied beforehand."""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import resource

import pytest

from glowplug.standby.server import footprint

PAGE = mmap.PAGESIZE
PAGES = 64


def in_a_child(function):
    readable, writable = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writable, json.dumps(function()).encode())
        finally:
            os._exit(0)
    os.close(writable)
    with os.fdopen(readable, "rb") as stream:
        answer = stream.read()
    os.waitpid(pid, 0)
    return json.loads(answer)


@pytest.fixture
def memory():
    area = mmap.mmap(-1, PAGES * PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    area.write(b"x" * (PAGES * PAGE))
    start = ctypes.addressof(ctypes.c_char.from_buffer(area))
    return area, start


def test_what_a_child_wrote_is_found(memory):
    area, start = memory

    def child():
        for page in (3, 4, 9):
            area[page * PAGE] = 0
        return footprint.touched([(start, start + PAGES * PAGE, True)])

    read, written = in_a_child(child)
    assert read == []
    assert [((low - start) // PAGE, (high - start) // PAGE) for low, high in written] == [(3, 5), (9, 10)]


def test_a_prepared_page_is_not_copied_when_it_is_written(memory):
    area, start = memory

    def faults(ranges):
        footprint.prepare([], ranges)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for page in range(PAGES):
            area[page * PAGE] = 0
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    assert in_a_child(lambda: faults([])) >= PAGES
    assert in_a_child(lambda: faults([(start, start + PAGES * PAGE)])) < PAGES / 4


def test_ranges_that_are_no_more_are_passed_by():
    footprint.prepare([(PAGE, 2 * PAGE)], [(0, PAGE)])


def test_the_mappings_of_this_process_are_read():
    places = footprint.mappings()
    assert {private for _, _, private in places} == {True, False}
    assert all(start < end and start % PAGE == end % PAGE == 0 for start, end, _ in places)
