"""Rates and times left, by a clock of the test's own."""

from __future__ import annotations

from glowplug.store.progress import Meter, Transfer

SECOND = 1_000_000_000


def test_the_rate_is_that_of_the_last_seconds():
    now, told = [0], []
    meter = Meter(100, told.append, clock=lambda: now[0])
    for second, done in ((1, 10), (2, 10), (10, 20)):
        now[0] = second * SECOND
        meter.add(done)
        meter.tell()
    assert told == [Transfer(10, 100, 10.0, 9.0), Transfer(20, 100, 10.0, 8.0), Transfer(40, 100, 2.5, 24.0)]


def test_nothing_is_guessed_at_the_beginning_and_not_everything_is_told():
    now, told = [0], []
    meter = Meter(100, told.append, clock=lambda: now[0])
    for _ in range(5):
        now[0] += SECOND // 100
        meter.add(1)
        meter.tell()
    assert [one.seconds_left for one in told] == [None]
    meter.reach(100)
    meter.tell(last=True)
    assert told[-1].done_bytes == 100
