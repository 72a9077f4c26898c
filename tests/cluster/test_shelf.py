"""Chunks that are ready for others: each brought once, the last asked for stay, a failure is told and forgotten."""

from __future__ import annotations

import threading

import pytest

from glowplug.cluster.nodes.shelf import Shelf


def test_a_chunk_is_brought_by_one() -> None:
    shelf = Shelf(100)
    first, mine = shelf.claim("a")
    second, also_mine = shelf.claim("a")
    assert (mine, also_mine) == (True, False)
    assert first is second
    shelf.put("a", "reference", 10)
    assert second.result(0) == "reference"
    third, again = shelf.claim("a")
    assert (third.result(0), again) == ("reference", False)


def test_what_was_not_asked_for_falls_off() -> None:
    shelf = Shelf(25)
    for name in "abc":
        shelf.claim(name)
        shelf.put(name, name, 10)
        shelf.claim("a")
    assert shelf.claim("a")[1] is False
    assert shelf.claim("b")[1] is True


def test_one_that_is_larger_than_the_shelf_is_given_away_all_the_same() -> None:
    shelf = Shelf(5)
    future, _ = shelf.claim("a")
    shelf.put("a", "reference", 10)
    assert future.result(0) == "reference"


def test_a_failure_is_told_to_all_who_wait_and_the_next_tries_again() -> None:
    shelf = Shelf(100)
    futures = [shelf.claim("a")[0] for _ in range(3)]
    shelf.fail("a", ValueError("no"))
    for future in futures:
        with pytest.raises(ValueError, match="no"):
            future.result(0)
    assert shelf.claim("a")[1] is True


def test_many_threads_have_one_bring_it() -> None:
    shelf, mine = Shelf(100), []
    barrier = threading.Barrier(16)

    def claim() -> None:
        barrier.wait()
        mine.append(shelf.claim("a")[1])

    threads = [threading.Thread(target=claim) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert mine.count(True) == 1
