"""Who reads which chunk: the same answer everywhere, even shares, and somebody who stands in."""

from __future__ import annotations

from collections import Counter

from glowplug.cluster.nodes.shares import MOST_ASKED, order
from glowplug.core.disk.digest import sha256

CHUNKS = [sha256(str(number).encode()) for number in range(3000)]
NODES = [f"node-{number}" for number in range(10)]


def test_every_node_comes_to_the_same_answer() -> None:
    for chunk in CHUNKS[:50]:
        assert order(chunk, NODES) == order(chunk, list(reversed(NODES)))
        assert len(set(order(chunk, NODES))) == MOST_ASKED


def test_shares_are_about_even() -> None:
    first = Counter(order(chunk, NODES)[0] for chunk in CHUNKS)
    assert set(first) == set(NODES)
    assert max(first.values()) < 1.3 * len(CHUNKS) / len(NODES)


def test_whoever_stands_in_for_a_node_is_the_same_for_all() -> None:
    for chunk in CHUNKS[:50]:
        gone, second, *_ = order(chunk, NODES)
        assert next(one for one in order(chunk, NODES) if one != gone) == second


def test_those_who_have_it_come_first() -> None:
    for chunk in CHUNKS[:50]:
        assert order(chunk, NODES, {"node-3"})[0] == "node-3"
    shared = Counter(order(chunk, NODES, {"node-3", "node-7"})[0] for chunk in CHUNKS)
    assert set(shared) == {"node-3", "node-7"}


def test_alone_there_is_nobody_to_ask() -> None:
    assert order(CHUNKS[0], []) == []
