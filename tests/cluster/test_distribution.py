"""One model on several nodes of a real cluster: what the origin is asked for, and what becomes of it in bad times."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster.nodes import Nodes, running
from tests.components.relay import Counts, Relay
from tests.store.conftest import contents

pytestmark = pytest.mark.cluster

MB = 1 << 20
Push = Callable[[int], tuple[str, Path]]


def entry(nodes: Nodes, number: int, url: str) -> dict[str, bytes]:
    """Return the files that a node has of a pinned URL."""
    return contents(nodes.cache(number) / "entries" / url.rpartition("@")[2] / "content")


def test_the_origin_is_read_once_for_three_nodes(three_nodes: Nodes, push: Push, origin: Relay) -> None:
    from glowplug import cluster

    url, folder = push(40)
    origin.counts = Counts()
    found = cluster.preload(url)
    assert not found.failed
    assert len(found.outcomes) == 3
    assert found.size == sum(path.stat().st_size for path in folder.iterdir())
    assert found.origin_bytes == found.size
    assert origin.counts.received_bytes <= 1.1 * found.size
    assert all(one.origin_bytes and one.peer_bytes for one in found.outcomes)  # every node read a share
    for number in range(3):
        assert entry(three_nodes, number, url) == contents(folder)


def test_what_every_node_has_is_not_fetched_again(three_nodes: Nodes, push: Push, origin: Relay) -> None:
    from glowplug import cluster

    url, _ = push(5)
    cluster.preload(url)
    origin.counts = Counts()
    found = cluster.preload(url)
    assert [(one.origin_bytes, one.peer_bytes, one.error) for one in found.outcomes] == [(0, 0, None)] * 3
    assert origin.counts.received_bytes == 0


def test_chosen_nodes_get_it_and_the_last_gets_it_from_them(three_nodes: Nodes, push: Push, origin: Relay) -> None:
    from glowplug import cluster

    url, folder = push(20)
    first = three_nodes.ids[:2]
    found = cluster.preload(url, nodes=first)
    assert sorted(one.node for one in found.outcomes) == sorted(first)
    origin.counts = Counts()
    late = cluster.preload(url, nodes="all")
    assert late.origin_bytes == 0
    assert origin.counts.received_bytes == 0
    assert {one.node: one.peer_bytes for one in late.outcomes if one.peer_bytes} == {three_nodes.ids[2]: found.size}
    assert entry(three_nodes, 2, url) == contents(folder)


def test_files_that_nobody_pushed_are_read_by_one_node(three_nodes: Nodes, push: Push, origin: Relay) -> None:
    from glowplug import cluster
    from glowplug.store.backend import open_backend
    from glowplug.store.location import parse

    url = "s3://models/cluster/plain/model"
    place = open_backend(parse(url))
    files = {"weights.bin": bytes(range(256)) * 40_000, "bundle.json": b"{}"}
    for name, data in files.items():
        place.backend.write(place.child(name), data)
    origin.counts = Counts()
    found = cluster.preload(url)
    assert not found.failed
    size = sum(map(len, files.values()))
    assert found.origin_bytes == size
    assert origin.counts.received_bytes <= 1.1 * size + 100_000  # listings are a part of it
    for number in range(3):
        assert entry(three_nodes, number, found.url) == files


def test_a_node_without_room_is_named_and_the_others_go_on(
    tmp_path_factory: pytest.TempPathFactory, push: Push, origin: Relay
) -> None:
    from glowplug import cluster
    from glowplug.core.errors import DiskFullError

    url, folder = push(10)
    with running(tmp_path_factory.mktemp("room"), 1) as nodes:
        nodes.join(1, GLOWPLUG_NODE_CACHE_BYTES=str(MB))
        found = cluster.preload(url)
        assert [one.node for one in found.failed] == [nodes.ids[1]]
        assert isinstance(found.failed[0].error, DiskFullError)
        assert entry(nodes, 0, url) == contents(folder)


def test_a_node_that_cannot_reach_the_origin_gets_it_from_others(
    tmp_path_factory: pytest.TempPathFactory, push: Push, origin: Relay
) -> None:
    from glowplug import cluster

    url, folder = push(20)
    with running(tmp_path_factory.mktemp("apart"), 1) as nodes:
        nodes.join(1, AWS_ENDPOINT_URL="http://127.0.0.1:9", GLOWPLUG_RETRIES="0")
        found = cluster.preload(url)
        assert not found.failed
        by_node = {one.node: one for one in found.outcomes}
        assert by_node[nodes.ids[1]].origin_bytes == 0
        assert by_node[nodes.ids[0]].origin_bytes == found.size
        assert entry(nodes, 1, url) == contents(folder)
