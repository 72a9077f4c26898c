"""Three nodes of Ray on this machine, two replicas each: cluster_ready.py [MODEL] [--rounds 1] [--smoke]

From `deploy` to all replicas ready, with empty node caches and with full ones; beside it the same application that
imports TensorFlow and loads the SavedModel. Bytes are counted by a relay in front of the storage; memory is the PSS of
all processes that have the model. Then from two replicas to six on warm nodes, and a node killed under load. It runs
itself in a network namespace, and in the environment of `make test-cluster`.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]

NODES, EACH = 3, 2
_WAIT_S = 300.0
_ANSWERED_S = 120.0  # a client gives a request up after that


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", nargs="?", default="encoder")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--smoke", action="store_true", help="keep no result")
    parser.add_argument("--without-stock", action="store_true")
    parser.add_argument("--bundle", type=Path, help="of the model, for the engine native, where there is one already")
    args = parser.parse_args()
    enter_namespace()
    import bundles
    import machine
    import models

    bundle = args.bundle or bundles.bundle(args.model, "native")
    source = models.saved_model(args.model)
    shape, dtype = models.INPUTS[args.model]
    machine.prepare()
    document: dict[str, Any] = {
        "machine": machine.describe(),
        "model": args.model,
        "nodes": NODES,
        "replicas_each": EACH,
    }
    rounds = []
    with tempfile.TemporaryDirectory(prefix="glow-cluster-") as folder, _storage(Path(folder)) as relay:
        url, size = _push(bundle, source)
        document["bundle_bytes"] = size
        for number in range(args.rounds):
            one: dict[str, Any] = {"ours": ours(Path(folder) / f"ours-{number}", url, size, relay, shape, dtype)}
            print(json.dumps(one["ours"]), flush=True)
            if not args.without_stock:
                one["stock"] = stock(Path(folder) / f"stock-{number}", shape, dtype)
                print(json.dumps(one["stock"]), flush=True)
            rounds.append(one)
    document["rounds"] = rounds
    if not args.without_stock:
        stock_s = median(one["stock"]["ready_s"] for one in rounds)
        document["times_sooner"] = {
            side: round(stock_s / median(one["ours"][side] for one in rounds), 2) for side in ("cold_s", "warm_s")
        }
        print(document["times_sooner"])
    if not args.smoke:
        machine.write_result("cluster_ready", document, partial=args.model != "encoder" or args.without_stock)


def ours(folder: Path, url: str, size: int, relay: Any, shape: Any, dtype: str) -> dict[str, Any]:
    from ray import serve
    from tests.cluster.nodes import running
    from tests.components.relay import Counts

    from glowplug import cluster

    found: dict[str, Any] = {}
    with running(folder, NODES) as nodes:
        _start_serve()
        relay.counts = Counts()
        began = time.monotonic()
        options = {"replicas": NODES * EACH, "max_replicas_per_node": EACH}
        cluster.deploy({"m": url}, application="ours", **options)
        found["cold_s"] = time.monotonic() - began
        found["origin_times"] = round(relay.counts.received_bytes / size, 4)
        replicas = _replicas("ours")
        found["pss_mb"] = _pss_mb([pid for one in replicas for pid in one["workers"]])
        found["replica_ready_s"] = sorted(one["ready_s"] for one in replicas)
        cluster.down("ours")
        began = time.monotonic()
        serve.run(cluster.deployment({"m": url}, **options), name="again")
        found["warm_s"] = time.monotonic() - began
        serve.run(cluster.deployment({"m": url}, replicas=2), name="again")
        _wait(lambda: len(_running("again")) == len(_replicas("again")) == 2, "two are left")
        before = {one["replica"] for one in _replicas("again")}
        serve.run(cluster.deployment({"m": url}, replicas=6), name="again")
        _wait(lambda: len(_replicas("again")) == 6, "six have said that they are ready")
        later = [one for one in _replicas("again") if one["replica"] not in before]
        found["two_to_six_ready_s"] = sorted(one["ready_s"] for one in later)
        found["two_to_six_steps_s"] = [one["steps"] for one in later]
        found["killed"] = _killed(nodes, shape, dtype)
    return found


def stock(folder: Path, shape: Any, dtype: str) -> dict[str, Any]:
    from ray import cloudpickle, serve
    from scripts import stock_replica
    from tests.cluster.nodes import running

    cloudpickle.register_pickle_by_value(stock_replica)  # nodes need not find the module
    with running(folder, NODES):
        _start_serve()
        options = {"num_replicas": NODES * EACH, "max_replicas_per_node": EACH, "max_ongoing_requests": 64}
        application = (
            serve.deployment(stock_replica.StockReplica)
            .options(**options)
            .bind(str(folder), "s3://models/stock", list(shape), dtype)
        )
        began = time.monotonic()
        handle = serve.run(application, name="stock")
        ready_s = time.monotonic() - began
        pids = {handle.about.remote().result()["pid"] for _ in range(60)}
        return {"ready_s": ready_s, "pss_mb": _pss_mb(pids)}


def _killed(nodes: Any, shape: Any, dtype: str) -> dict[str, Any]:
    """Kill a node that has replicas while requests come, from before until after it is replaced; count what they got.

    A request that gets a 5xx, or no connection, is sent again, as clients do. What Ray takes to find out that a node is
    gone is told apart from what it takes from then on.
    """
    import numpy as np
    import ray

    rows = [[0] * shape[-1]] if dtype.startswith("int") else [[0.5] * shape[-1]]
    first = np.array(_ask(rows))
    counts = Counter[str]()
    stop = threading.Event()

    def ask() -> None:
        while not stop.is_set():
            until = time.monotonic() + _ANSWERED_S
            while True:
                try:
                    found = np.array(_ask(rows))
                except (OSError, http.client.HTTPException):  # what urllib raises for a 5xx is one of the former
                    counts["again"] += 1
                    if time.monotonic() > until:
                        counts["failed"] += 1
                        break
                    time.sleep(0.05)
                    continue
                counts["answered"] += 1
                counts["wrong"] += not np.allclose(found, first, rtol=1e-5, atol=1e-6)
                break

    def answered(more: int) -> None:
        wanted = counts["answered"] + more
        _wait(lambda: counts["answered"] >= wanted, "requests are answered")

    before = _running("again")
    victim = max(range(1, NODES), key=lambda number: list(before.values()).count(nodes.ids[number]))
    lost = list(before.values()).count(nodes.ids[victim])
    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        answered(20)
        at_kill, began = counts["answered"], time.monotonic()
        nodes.kill(victim)
        gone = nodes.ids[victim]
        _wait(lambda: not any(one["NodeID"] == gone and one["Alive"] for one in ray.nodes()), "Ray knows")
        known_s = time.monotonic() - began
        _wait(lambda: len(now := _running("again")) == 6 and gone not in now.values(), "six again")
        took_s, until_six = time.monotonic() - began, counts["answered"] - at_kill
        answered(20)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    new = [one for one in _replicas("again") if one["replica"] not in before]
    return {
        **{name: counts[name] for name in ("answered", "wrong", "failed", "again")},
        "answered_until_six": until_six,
        "lost": lost,
        "ray_knew_s": known_s,
        "six_again_s": took_s,
        "replacements_ready_s": sorted(one["ready_s"] for one in new),
    }


def _running(application: str) -> dict[str, str]:
    """Return the replicas that Ray Serve says are running, and the node of each."""
    from ray.serve.context import _get_global_client

    found = _get_global_client().get_serve_details()["applications"][application]["deployments"]["glowplug"]
    return {one["replica_id"]: one["node_id"] for one in found["replicas"] if one["state"] == "RUNNING"}


def _wait(holds: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + _WAIT_S
    while not holds():
        if time.monotonic() > until:
            sys.exit(f"not within {_WAIT_S:.0f} s: {what}")
        time.sleep(0.05)


def _ask(rows: Any) -> Any:
    body = json.dumps({"instances": rows}).encode()
    request = urllib.request.Request("http://127.0.0.1:8000/v1/models/m:predict", body)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)["predictions"]


def _replicas(application: str) -> list[dict[str, Any]]:
    from glowplug import cluster

    found = [one for node in cluster.status()["nodes"] if node["alive"] for one in node["replicas"]]
    return [one for one in found if one["application"] == application]


def _pss_mb(pids: Any) -> int:
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                total += int(line.split()[1]) if line.startswith("Pss:") else 0
    return total >> 10


def _start_serve() -> None:
    from ray import serve

    serve.start(proxy_location="HeadOnly", http_options={"host": "127.0.0.1", "port": 8000})


@contextlib.contextmanager
def _storage(folder: Path) -> Iterator[Any]:
    from tests.components import relay, seaweedfs

    with seaweedfs.running(folder) as server, relay.relaying(server.s3_port) as found:
        os.environ.update(server.environment(found.port))
        yield found


def _push(bundle: Path, source: Path) -> tuple[str, int]:
    from glowplug.loader.origin import publish
    from glowplug.store.backend import open_backend
    from glowplug.store.location import parse

    pushed = publish(bundle, "s3://models/m/1")
    place = open_backend(parse("s3://models/stock"))
    for path in source.rglob("*"):
        if path.is_file():
            place.backend.write(place.child(path.relative_to(source).as_posix()), path.read_bytes())
    return f"s3://models/m/1@{pushed.digest}", pushed.total_bytes


def enter_namespace() -> None:
    """Begin anew in a network namespace: only a process without threads leaves the old one as a whole."""
    from tests.cluster.__main__ import ALONE, enter

    if not os.environ.get(ALONE):
        enter()
        os.environ[ALONE] = "1"
        os.execv(sys.executable, [sys.executable, *sys.argv])


if __name__ == "__main__":
    main()
