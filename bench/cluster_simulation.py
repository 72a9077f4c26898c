"""A distribution among many nodes, simulated chunk by chunk, with the rules of `glowplug.cluster.nodes.shares`.

Every node has a number of workers. Each takes the next chunk of its own random order. A chunk of its own share it reads
from the origin; for any other it asks the node whose share it is, which reads it from the origin once; whoever has
received it is a place from which Ray takes it for the next. Then it is checked and written. What all of this takes are
durations on resources: the origin, the way out of and into each node, and processors, which nodes of one machine share.
No Ray and no network are involved.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

WORKERS = 8


@dataclass(frozen=True, slots=True)
class Costs:
    """What moves how fast, in seconds a byte; a request is in seconds. `cores` are one machine's, or each node's."""

    origin: float  # of the origin as a whole
    network: float  # of the way into a node, and of the way out
    read: float  # processor: one byte from the origin
    receive: float  # processor: one byte from another node
    keep: float  # processor: check and write one byte
    request: float  # processor of the node that is asked, for one chunk
    wait: float  # from asking another node for a chunk until it begins to come, while no processor works for it
    fixed: float  # before and after, however large the model is
    cores: int
    one_machine: bool  # nodes share the processors


class Resource:
    """Servers with one queue: whoever comes first is served first."""

    def __init__(self, servers: int = 1) -> None:
        self._free = [0.0] * servers

    def use(self, now: float, duration: float) -> float:
        """Return when a piece of work that comes now is done."""
        done = max(now, heapq.heappop(self._free)) + duration
        heapq.heappush(self._free, done)
        return done


@dataclass(slots=True)
class Outcome:
    """When the last node has it all, what the origin sent, and how many requests the busiest node answered."""

    seconds: float
    origin_bytes: float
    most_requests: int


def simulate(nodes: int, size: float, chunks: int, costs: Costs, *, shared: bool = True, seed: int = 1) -> Outcome:
    """Bring a model of `size` bytes to all nodes. With `shared` off, each reads all of it from the origin."""
    part = size / chunks
    origin = Resource()
    one = Resource(costs.cores)
    processors = [one if costs.one_machine else Resource(costs.cores) for _ in range(nodes)]
    ways_in, ways_out = ([Resource() for _ in range(nodes)] for _ in range(2))
    reading: dict[int, float] = {}  # when the node whose share it is has a chunk
    holders: dict[int, list[int]] = {}
    counts = {"read": 0}
    asked = [0] * nodes
    chance = random.Random(seed)
    owners = [chance.randrange(nodes) for _ in range(chunks)]

    def read(node: int, now: float) -> Generator[float, float, float]:
        counts["read"] += 1
        now = yield origin.use(now, part * costs.origin)
        now = yield ways_in[node].use(now, part * costs.network)
        now = yield processors[node].use(now, part * costs.read)
        return now

    def worker(node: int, order: list[int], waiting: dict[int, list[Any]]) -> Generator[Any, float, None]:
        now = 0.0
        while order:
            chunk = order.pop()
            owner = owners[chunk] if shared else node
            key = chunk if shared else chunk * nodes + node
            if key not in reading:
                reading[key] = -1.0
                now = yield from read(owner, now)
                reading[key] = now
                for one_waiting in waiting.pop(key, []):
                    one_waiting(now)
            elif reading[key] < 0:
                now = yield (waiting, key)
            if owner != node:
                asked[owner] += 1
                now = costs.wait + (yield processors[owner].use(now, costs.request))
                sender = chance.choice(holders.setdefault(chunk, [owner]))  # Ray takes any node that has a copy
                now = yield ways_out[sender].use(now, part * costs.network)
                now = yield ways_in[node].use(now, part * costs.network)
                now = yield processors[node].use(now, part * costs.receive)
                holders[chunk].append(node)
            now = yield processors[node].use(now, part * costs.keep)
        finished[node] = max(finished[node], now)

    finished = [0.0] * nodes
    waiting: dict[int, list[Any]] = {}
    events: list[tuple[float, int, Any]] = []
    number = 0

    def resume(process: Any, now: float) -> None:
        nonlocal number
        try:
            until = process.send(now)
        except StopIteration:
            return
        if isinstance(until, tuple):
            places, key = until
            places.setdefault(key, []).append(lambda at: push(at, process))
        else:
            push(until, process)

    def push(at: float, process: Any) -> None:
        nonlocal number
        number += 1
        heapq.heappush(events, (at, number, process))

    for node in range(nodes):
        order = chance.sample(range(chunks), chunks)
        for _ in range(WORKERS):
            process = worker(node, order, waiting)
            until = next(process, None)
            if isinstance(until, tuple):
                until[0].setdefault(until[1], []).append(lambda at, process=process: push(at, process))
            elif until is not None:
                push(until, process)
    while events:
        at, _, process = heapq.heappop(events)
        resume(process, at)
    return Outcome(costs.fixed + max(finished), counts["read"] * part, max(asked))
