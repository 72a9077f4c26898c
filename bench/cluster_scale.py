"""What one, two and three nodes take, whether a simulation says the same, and what it says of many: cluster_scale.py

[--sizes 50 200 400] [--rounds 3] [--measured FILE] [--smoke]. Each round preloads a model that nobody has, in MB, on
one node, on two and on three; the first rounds do not count. The simulation's costs are fitted to the smallest and the
largest; what those between take is a prediction. It runs itself in a network namespace, and in the environment of `make
test-cluster`.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]

from cluster_simulation import Costs, simulate  # noqa: E402

MB, CHUNK = 1 << 20, 16 << 20
UNKEPT = 3  # rounds before those that count: blocks of a disk that were never written to take twice as long
TINY = 1  # the size, in MB, of a model that takes what is fixed
MOST_OFF = 0.2  # between what is simulated and what was measured; beyond that nothing is extrapolated
# A fleet on paper: 25 Gb/s for each node, an origin of 40 Gb/s, 8 processors that check and write 1 GB/s each, and
# 1 ms of processor time for a request to an agent. How long one waits for a chunk is what was fitted here.
FLEET = Costs(1 / 5e9, 8 / 25e9, 0.3e-9, 0.3e-9, 1e-9, 1e-3, 0.0, 2.0, 8, one_machine=False)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", type=int, nargs="+", default=[50, 200, 400])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--smoke", action="store_true", help="small sizes, one round, and keep no result")
    parser.add_argument("--measured", type=Path, help="compare with what an earlier run measured, a file that it wrote")
    args = parser.parse_args()
    if args.smoke:
        args.sizes, args.rounds = [5, 20], 1
    if args.measured is None:
        from cluster_ready import enter_namespace

        enter_namespace()
    import machine

    document: dict[str, Any] = {"machine": machine.describe(), "rounds": args.rounds}
    if args.measured is None:
        runs, read_times = measure(args.sizes, args.rounds)
    else:
        earlier = json.loads(args.measured.read_text())
        document |= {name: earlier[name] for name in ("machine", "rounds")}
        runs, read_times = measured_before(earlier)
    document["measured_s"] = {f"{nodes} nodes, {size} MB": taken for (nodes, size), taken in runs.items()}
    middle = {key: median(taken) for key, taken in runs.items()}
    ends = [min(args.sizes), max(args.sizes)]
    costs = fit(middle, ends)
    document["costs"] = {name: getattr(costs, name) for name in costs.__slots__}
    document["compared"] = compared = []
    for (nodes, size), measured in sorted(middle.items()):
        said = simulate(nodes, size * MB, chunks_of(size), costs)
        fitted = size == TINY or size in ends
        row = {"nodes": nodes, "mb": size, "measured_s": round(measured, 3), "simulated_s": round(said.seconds, 3)}
        row |= {"off": round(said.seconds / measured - 1, 3), "fitted": fitted}
        row |= {
            "measured_origin_times": read_times[nodes, size],
            "simulated_origin_times": said.origin_bytes / size / MB,
        }
        compared.append(row)
        print(json.dumps(row), flush=True)
    document["furthest_off"] = furthest = max(abs(row["off"]) for row in compared if row["mb"] > TINY)
    document["extrapolated"] = []
    if furthest > MOST_OFF and not args.smoke:
        print(f"the simulation is off by {100 * furthest:.0f} %: nothing is extrapolated from it", file=sys.stderr)
        machine.write_result("cluster_scale", document, partial=True)
        sys.exit(1)
    for nodes in (10, 100) if args.smoke else (10, 100, 1000):
        for size in (1e9, 1e10, 1e11):
            document["extrapolated"].append(row := extrapolate(nodes, size, costs.wait))
            print(json.dumps(row), flush=True)
    if not args.smoke:
        machine.write_result("cluster_scale", document, partial=False)


def chunks_of(size_mb: int) -> int:
    """Return how many chunks a file of this size is pushed as."""
    from glowplug.store.cutting import cut

    return len(list(cut(size_mb * MB)))


def extrapolate(nodes: int, size: float, wait: float) -> dict[str, Any]:
    """Simulate a fleet with at most 512 pieces, in the place of chunks of 16 MB, whose requests are counted exactly."""
    pieces = min(512, int(size / CHUNK))
    real = size / CHUNK
    per_piece = {"request": FLEET.request * real / pieces, "wait": wait * real / pieces}
    scaled = replace(FLEET, **per_piece)
    ours = simulate(nodes, size, pieces, scaled)
    alone = max(nodes * size * FLEET.origin, size * FLEET.network) + FLEET.fixed
    return {
        "nodes": nodes,
        "gb": size / 1e9,
        "origin_gb": round(ours.origin_bytes / 1e9, 1),
        "last_s": round(ours.seconds, 1),
        "each_from_the_origin_s": round(alone, 1),
        "each_from_the_origin_gb": nodes * size / 1e9,
        "requests_to_an_agent": round(ours.most_requests * real / pieces),
        "requests_a_s": round(ours.most_requests * real / pieces / ours.seconds),
    }


def fit(middle: dict[tuple[int, int], float], sizes: list[int]) -> Costs:
    """Fit costs of this machine: what is fixed to the tiny model, the processor's to one node, then to two and three.

    Each is the cost whose simulation is the least off over these sizes.
    """
    fixed = min(middle[nodes, TINY] for nodes in (1, 2, 3))
    found = {"origin": 0.0, "network": 0.0, "request": 2e-3, "fixed": fixed, "cores": 2, "one_machine": True}

    def furthest_off(some: tuple[int, ...], read: float, receive: float, wait: float) -> float:
        costs = Costs(read=read, receive=receive, keep=read / 2, wait=wait, **found)
        return max(
            abs(simulate(nodes, size * MB, chunks_of(size), costs).seconds / middle[nodes, size] - 1)
            for nodes in some
            for size in sizes
        )

    read = _least(lambda value: furthest_off((1,), value, 0.0, 0.0))
    best: tuple[float, float, float] = (math.inf, 0.0, 0.0)
    for wait in (number / 200 for number in range(41)):  # seconds: up to 0.2
        receive = _least(lambda value, wait=wait: furthest_off((2, 3), read, value, wait))
        best = min(best, (furthest_off((2, 3), read, receive, wait), receive, wait))
    return Costs(read=read, receive=best[1], keep=read / 2, wait=best[2], **found)


def _least(function: Callable[[float], float]) -> float:
    """Return where a function that falls and then rises is least, in seconds a byte."""
    low, high = 0.0, 1e-7
    for _ in range(60):
        third = (high - low) / 3
        low, high = (low + third, high) if function(low + third) > function(high - third) else (low, high - third)
    return (low + high) / 2


def measured_before(
    document: dict[str, Any],
) -> tuple[dict[tuple[int, int], list[float]], dict[tuple[int, int], float]]:
    """Return what `measure` returned when a result was written."""
    read = {(row["nodes"], row["mb"]): row["measured_origin_times"] for row in document["compared"]}
    runs = {(nodes, size): document["measured_s"][f"{nodes} nodes, {size} MB"] for nodes, size in read}
    return runs, read


def measure(sizes: list[int], rounds: int) -> tuple[dict[tuple[int, int], list[float]], dict[tuple[int, int], float]]:
    """Preload models; return what each took, by nodes and size, and the most that the origin was read for one."""
    from tests.cluster.nodes import running
    from tests.components import seaweedfs

    from glowplug import cluster
    from glowplug.cluster.nodes.agents import living
    from glowplug.store.push import push

    taken: dict[tuple[int, int], list[float]] = {}
    read: dict[tuple[int, int], float] = {}
    with tempfile.TemporaryDirectory(prefix="glow-scale-") as place, seaweedfs.running(Path(place)) as server:
        os.environ.update(server.environment())
        with running(Path(place) / "cluster", 3) as nodes:
            living()
            for number in range(-UNKEPT, rounds):
                for size in (TINY, *sizes):
                    for count in (1, 2, 3):
                        folder = Path(place) / "model"
                        folder.mkdir(exist_ok=True)
                        chance = random.Random(f"{number} {size} {count}")
                        data = b"".join(chance.randbytes(MB) for _ in range(size))  # not more than 256 MB at a time
                        (folder / "weights.bin").write_bytes(data)
                        url = f"s3://models/{number}/{size}/{count}"
                        pinned = f"{url}@{push(folder, url).digest}"
                        began = time.monotonic()
                        found = cluster.preload(pinned, nodes=nodes.ids[:count])
                        took = time.monotonic() - began
                        assert not found.failed
                        if number < 0:
                            continue
                        taken.setdefault((count, size), []).append(took)
                        times = round(found.origin_bytes / found.size, 4)
                        read[count, size] = max(read.get((count, size), 0.0), times)
    return taken, read


if __name__ == "__main__":
    main()
