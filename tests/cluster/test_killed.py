"""Nodes that die at bad moments, and nodes that come: in the middle of a distribution, and under load."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cluster.nodes import Nodes, running, wait_until
from tests.components.processes import free_ports
from tests.components.relay import Counts, Relay
from tests.store.conftest import contents

pytestmark = pytest.mark.cluster

MB = 1 << 20


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory, origin: Relay) -> Iterator[Nodes]:
    with running(tmp_path_factory.mktemp("killed"), 3) as found:
        yield found


def entry(nodes: Nodes, number: int, url: str) -> dict[str, bytes]:
    return contents(nodes.cache(number) / "entries" / url.rpartition("@")[2] / "content")


def test_a_node_that_dies_in_the_middle_is_stood_in_for(
    nodes: Nodes, push: Callable[[int], tuple[str, Path]], origin: Relay
) -> None:
    from glowplug import cluster
    from glowplug.cluster.nodes.agents import living

    url, folder = push(60)
    living()  # their agents run
    origin.counts, origin.bytes_per_s = Counts(), 1.5 * MB
    try:
        with ThreadPoolExecutor() as pool:
            preloading = pool.submit(cluster.preload, url)
            wait_until(lambda: origin.counts.received_bytes > 15 * MB, "a quarter was read")
            assert not preloading.done()
            nodes.kill(2)
            origin.bytes_per_s = None
            found = preloading.result(180)
    finally:
        origin.bytes_per_s = None
    assert [one.node for one in found.failed] == [nodes.ids[2]]
    for number in (0, 1):
        assert entry(nodes, number, url) == contents(folder)
    lost = found.size / 3  # at most the share of the node that died is read once more
    assert origin.counts.received_bytes <= 1.1 * (found.size + lost)


def test_a_node_that_joins_gets_what_all_have_from_them(
    nodes: Nodes, push: Callable[[int], tuple[str, Path]], origin: Relay
) -> None:
    from glowplug import cluster

    url, folder = push(10)
    cluster.preload(url, nodes="all")
    origin.counts = Counts()
    nodes.join()
    number = len(nodes.ids) - 1
    place = nodes.cache(number) / "entries" / url.rpartition("@")[2]
    wait_until(place.exists, "the new node has it")
    assert entry(nodes, number, url) == contents(folder)
    assert origin.counts.received_bytes < MB  # what was pushed before, of the tests before, may be on its way too


@pytest.mark.tensorflow
def test_a_node_that_dies_under_load_costs_no_wrong_answer(
    nodes: Nodes, bundle: Callable[[str], Path], origin: Relay
) -> None:
    from ray import serve

    import glowplug
    from glowplug import cluster
    from glowplug.loader.origin import publish

    url = "s3://models/killed/dense/1"
    publish(bundle("dense"), url)
    with glowplug.load(bundle("dense")) as model:
        (port,) = model.signature("serving_default").signature.inputs.values()
        shape = [1 if size is None else size for size in port.spec.shape or ()]
        row = np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)
        expected = np.ravel(model(row))
    http, _ = free_ports(2)
    serve.start(proxy_location="HeadOnly", http_options={"host": "127.0.0.1", "port": http})
    cluster.deploy({"dense": url}, application="load", replicas=3, ray_actor_options={"num_cpus": 1})
    stop, lock = threading.Event(), threading.Lock()
    good: list[bool] = []
    unanswered: list[str] = []

    def ask() -> None:
        body = json.dumps({"instances": row.tolist()}).encode()
        while not stop.is_set():
            failed = ""
            until = time.monotonic() + 60
            while time.monotonic() < until:
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{http}/v1/models/dense:predict", body, 60) as answer:
                        found = np.ravel(json.load(answer)["predictions"])
                except urllib.error.HTTPError as error:
                    failed = f"{error.code}"
                    good.append(error.code >= 500)  # what may be tried again
                    continue
                with lock:
                    good.append(bool(np.allclose(found, expected, rtol=1e-6)))
                failed = ""
                break
            if failed:
                unanswered.append(failed)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        wait_until(lambda: len(good) > 20, "requests are answered")
        before = {one["replica"]: node["node"] for node in _alive() for one in node["replicas"]}
        victim = next(number for number in (3, 1) if nodes.ids[number] in before.values())
        nodes.kill(victim)
        answered = len(good)
        wait_until(lambda: len(_replicas() - set(before)) > 0 and len(_replicas()) == 3, "three again")
        wait_until(lambda: len(good) > answered + 20, "requests go on")
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert all(good)
    assert not unanswered


def _alive() -> list[dict[str, Any]]:
    from glowplug import cluster

    return [node for node in cluster.status()["nodes"] if node["alive"]]


def _replicas() -> set[str]:
    return {one["replica"] for node in _alive() for one in node["replicas"]}
