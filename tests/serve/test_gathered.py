"""Parts of messages are put together as they were sent, whatever they were, and take no more room than they hold."""

from __future__ import annotations

import sys

from hypothesis import given
from hypothesis import strategies as st

from glowplug.serve.rpc.gathered import Gathered

STEPS = st.lists(st.tuples(st.booleans(), st.sampled_from([0, 1, 5, 4095, 4096, 10_000])), max_size=30)


@given(STEPS)
def test_what_is_taken_is_what_was_added(steps):
    gathered, added, taken = Gathered(), b"", b""
    for adds, size in steps:
        if adds:
            part = bytes((len(added) + place) % 251 for place in range(size))
            gathered.add(part)
            added += part
        else:
            piece = gathered.take(min(size, gathered.size))
            assert type(piece) is bytes
            taken += piece
        assert gathered.size == len(added) - len(taken)
    assert taken + gathered.take(gathered.size) == added
    assert not gathered.is_within()


def test_parts_of_a_few_bytes_take_no_more_room_than_their_bytes():
    gathered = Gathered()
    for _ in range(100_000):
        gathered.add(b"0123456789abcdef")
    assert sum(map(sys.getsizeof, gathered._parts)) < 1.5 * gathered.size
