"""What is tried again, how often, and after how long."""

from __future__ import annotations

import threading
from itertools import pairwise

import pytest

from glowplug.core.errors import AccessError, UnreachableError
from glowplug.store.transfer.retrying import FIRST_DELAY_S, LONGEST_DELAY_S, LONGEST_WISH_S, Retrying, delay_s


class Failing:
    """A backend that raises these errors one after another, then answers."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls = 0

    def size(self, path):
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return 7

    def read(self, path, start, end):
        return b"x" * self.size(path)

    def write(self, path, data):
        self.size(path)

    def list(self, prefix):
        yield from ()
        self.size(prefix)


def unreachable(wish: float | None = None) -> UnreachableError:
    return UnreachableError("not now", retry_after_s=wish)


def test_a_storage_that_comes_back_is_asked_until_it_does():
    for operation in (
        lambda one: one.size("a"),
        lambda one: one.read("a", 0, 7),
        lambda one: one.write("a", b""),
        lambda one: list(one.list("a")),
    ):
        backend, slept = Failing(unreachable(), unreachable()), []
        operation(Retrying(backend, retries=2, sleep=slept.append))
        assert backend.calls == 3
        assert len(slept) == 2


def test_a_storage_that_stays_away_is_given_up():
    backend = Failing(*[unreachable() for _ in range(9)])
    with pytest.raises(UnreachableError):
        Retrying(backend, retries=3, sleep=lambda seconds: None).size("a")
    assert backend.calls == 4


def test_what_is_refused_is_not_asked_for_again():
    backend = Failing(AccessError("no"))
    with pytest.raises(AccessError):
        Retrying(backend, retries=3, sleep=lambda seconds: pytest.fail("waited")).size("a")
    assert backend.calls == 1


def test_nobody_comes_back_sooner_than_the_storage_wishes():
    slept: list[float] = []
    Retrying(Failing(unreachable(30.0)), retries=1, sleep=slept.append).size("a")
    assert 30.0 <= slept[0] <= 30.0 + FIRST_DELAY_S


def test_a_wish_that_is_too_long_is_told_to_the_caller():
    with pytest.raises(UnreachableError):
        Retrying(Failing(unreachable(LONGEST_WISH_S + 1)), retries=9, sleep=lambda seconds: pytest.fail("waited")).size(
            "a"
        )


def test_delays_grow_to_a_limit_and_differ():
    limits = [max(delay_s(attempt) for _ in range(200)) for attempt in range(10)]
    assert all(earlier < later or later > LONGEST_DELAY_S * 0.8 for earlier, later in pairwise(limits))
    assert max(limits) <= LONGEST_DELAY_S
    assert len({delay_s(3) for _ in range(20)}) == 20


def test_whoever_gives_up_ends_the_delays():
    backend = Failing(*[unreachable(60.0) for _ in range(9)])
    retrying = Retrying(backend, retries=9)
    threading.Timer(0.05, retrying.give_up).start()
    with pytest.raises(UnreachableError):
        retrying.size("a")
    assert backend.calls == 2


def test_a_listing_without_end_is_refused(monkeypatch):
    from itertools import count

    from glowplug.core.errors import StorageError

    monkeypatch.setattr("glowplug.store.transfer.retrying.MOST_LISTED", 10)
    endless = Failing()
    endless.list = lambda prefix: count()
    with pytest.raises(StorageError, match="more than 10 objects"):
        Retrying(endless).list("a")


class Breaking:
    """A backend that hands out an object while it arrives, two bytes at a time, and breaks off after so many pieces."""

    def __init__(self, data: bytes, *breaks: int) -> None:
        self.data, self.breaks, self.asked = data, list(breaks), []

    def stream(self, path, start, end):
        self.asked.append((start, end))
        pieces = range(start, min(end, len(self.data)), 2)
        for at in pieces[: self.breaks[0]] if self.breaks else pieces:
            yield self.data[at : min(at + 2, end)]
        if self.breaks:
            self.breaks.pop(0)
            raise unreachable()


def test_an_answer_that_breaks_off_goes_on_from_there():
    backend = Breaking(b"0123456789", 1, 0, 2)
    pieces = Retrying(backend, retries=3, sleep=lambda seconds: None).pieces("a", 1, 10, 4)
    assert b"".join(pieces) == b"123456789"
    assert backend.asked == [(1, 10), (3, 10), (3, 10), (7, 10)]


def test_an_answer_that_always_breaks_off_is_given_up_however_far_it_comes():
    backend = Breaking(b"0123456789" * 9, *[1] * 9)
    with pytest.raises(UnreachableError):
        list(Retrying(backend, retries=3, sleep=lambda seconds: None).pieces("a", 0, 90, 4))
    assert len(backend.asked) == 4


def test_a_storage_without_streams_is_read_piece_by_piece_until_it_ends():
    class Plain:
        def read(self, path, start, end):
            return b"0123456789"[start:end]

    retrying = Retrying(Plain())
    assert list(retrying.pieces("a", 1, 8, 3)) == [b"123", b"456", b"7"]
    assert list(retrying.pieces("a", 8, 99, 3)) == [b"89"]
