"""How cost grows with a model and with its instances: growth.py [weights|nodes|instances ...] [--rounds 7]

weights: 10 MB to 2 GB. nodes: 50 to 5,000 operations. instances: 1 to 16 processes with one model on this machine,
their memory in all, and the time until the last has answered when all are started at once.

Stock TensorFlow and LiteRT are there to compare with; stock gets few rounds and few instances: each takes seconds.
`glowplug` is what `pack` chooses; `native` is there as well, since LiteRT takes no model of 2 GB.
`--prepare` builds and converts the models into the cache (GLOWPLUG_BENCH_CACHE) and measures nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import machine
import run
import sources

from glowplug.bench.contestant import Contestant, ContestantError, Question, Running
from glowplug.bench.contestants.start import now_ns
from glowplug.bench.peers import PEERS, STOCK
from glowplug.bench.preparation import Preparation, Source
from glowplug.convert.example import make_kept_example

MEGABYTES = (10, 100, 500, 2_000)
NODES = (50, 500, 5_000)
INSTANCES = (1, 2, 4, 8, 16)
STOCK_INSTANCES, STOCK_ROUNDS = 4, 2
INSTANCE_MODELS = ("resnet50", "encoder")
INSTANCE_ROUNDS = 3
WARM_STARTS = 1  # before any that counts: they fill the page cache
LIMIT_S = 600.0

Contestants = dict[str, Contestant | str]


def contestants(name: str) -> tuple[Contestants, Question]:
    """Return stock, LiteRT, what `pack` chooses for a model and our `native`, or why one of them cannot take it."""
    model = sources.path_of(name)
    scratch, example = make_kept_example(model, run.PREPARED, limit_s=LIMIT_S)
    source = Source(model, example.saved_model, example.signature)
    preparation = Preparation(source, scratch, machine.ENVIRONMENTS, limit_s=LIMIT_S)
    preparation.choose()
    found: Contestants = {}
    for peer in PEERS:
        if peer.name in (STOCK, "litert", "glowplug-native", preparation.chosen):
            one = preparation.contestant(peer)
            found["glowplug" if peer.name == preparation.chosen else peer.name] = (
                one if isinstance(one, Contestant) else one.reason
            )
    return found, Question(example.signature, example.inputs)


def grown(kind: str, sizes: tuple[int, ...], rounds: int) -> dict[str, Any]:
    """Return the starts of each size, all sizes in turn, so that a slow minute of the machine is a slow one for all."""
    prepared = {size: contestants(f"{kind}-{size}") for size in sizes}
    results: dict[str, Any] = {str(size): {} for size in sizes}
    for number in range(-WARM_STARTS, rounds):
        for size in sizes:
            candidates, question = prepared[size]
            for name, one in candidates.items():
                row = results[str(size)].setdefault(name, {"loaded_ns": [], "first_ns": []})
                if isinstance(one, str) or "failed" in row:
                    row.setdefault("failed", one)
                elif name != STOCK or number < STOCK_ROUNDS:
                    start(one, question, row, counts=number >= 0)
    for size, rows in results.items():
        print(f"{kind} {size}: {', '.join(f'{name} {shown(row)}' for name, row in rows.items())}", flush=True)
    return results


def start(one: Contestant, question: Question, row: dict[str, Any], *, counts: bool) -> None:
    row["engine"] = one.name
    try:
        with Running(one, question, threads=2, limit_s=LIMIT_S) as running:
            if counts:
                row["loaded_ns"].append(running.loaded_ns)
                row["first_ns"].append(running.first_ns)
    except ContestantError as error:
        row["failed"] = str(error)


def shown(row: dict[str, Any]) -> str:
    if "failed" in row:
        return f"failed ({row['failed'][:60]})"
    return f"loaded {median(row['loaded_ns']) / 1e6:.0f} ms, first {median(row['first_ns']) / 1e6:.0f} ms"


def instances(rounds: int) -> dict[str, Any]:
    results: dict[str, Any] = {}
    for model in INSTANCE_MODELS:
        candidates, question = contestants(model)
        results[model] = {}
        for name, one in candidates.items():
            if isinstance(one, str):
                results[model][name] = {"failed": one}
            else:
                results[model][name] = numbers(one, question, 1 if name == STOCK else min(rounds, INSTANCE_ROUNDS))
            print(f"{model} {name} {summary(results[model][name])}", flush=True)
    return results


def summary(one: dict[str, Any]) -> str:
    if "failed" in one:
        return str(one["failed"])
    parts = []
    for count, runs in one.items():
        total, private, ready = (
            median(each[key] for each in runs) for key in ("pss_bytes", "private_bytes", "ready_ns")
        )
        parts.append(f"{count}: {total / 1e6:.0f} MB (at most {private / 1e6:.0f} private) {ready / 1e9:.2f} s")
    return ", ".join(parts)


def numbers(contestant: Contestant, question: Question, rounds: int) -> dict[str, Any]:
    """Return the rounds of each number of instances that this machine has the memory for."""
    found: dict[str, Any] = {}
    os.sync()
    try:
        one = together(contestant, question, 1)
        for count in INSTANCES:
            too_many = contestant.name == STOCK and count > STOCK_INSTANCES
            if too_many or count * one["private_bytes"] > available_bytes() // 2:
                break
            found[str(count)] = [together(contestant, question, count) for _ in range(rounds)]
    except ContestantError as error:
        return {"failed": str(error)}
    return found


def together(contestant: Contestant, question: Question, count: int) -> dict[str, Any]:
    """Start all at once; return when the last has answered, and their memory."""
    failures: list[ContestantError] = []
    started: list[Running] = []

    def start_one() -> None:
        try:
            started.append(Running(contestant, question, threads=2, limit_s=LIMIT_S))
        except ContestantError as error:
            failures.append(error)

    began = now_ns()
    threads = [threading.Thread(target=start_one) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ready = now_ns() - began
    with contextlib.ExitStack() as stack:
        for running in started:
            stack.enter_context(running)
        if failures:
            raise failures[0]
        memories = [running.memory() for running in started]
    return {
        "ready_ns": ready,
        "pss_bytes": sum(one.pss_bytes for one in memories),
        "private_bytes": max(one.private_bytes for one in memories),
    }


def available_bytes() -> int:
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))


def names(kinds: list[str]) -> Iterator[str]:
    """Yield the models that are needed."""
    if "weights" in kinds:
        yield from (f"weights-{size}" for size in MEGABYTES)
    if "nodes" in kinds:
        yield from (f"nodes-{size}" for size in NODES)
    if "instances" in kinds:
        yield from INSTANCE_MODELS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", choices=("weights", "nodes", "instances", []), metavar="KIND")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--prepare", action="store_true", help="only build and convert the models")
    args = parser.parse_args()
    machine.prepare()
    kinds = args.kinds or ["weights", "nodes", "instances"]
    if args.prepare:
        for name in names(kinds):
            found, _ = contestants(name)
            print(name, {key: one if isinstance(one, str) else one.name for key, one in found.items()}, flush=True)
        return
    document: dict[str, Any] = {"machine": machine.describe(), "rounds": args.rounds}
    if "weights" in kinds:
        document["weights"] = grown("weights", MEGABYTES, args.rounds)
    if "nodes" in kinds:
        document["nodes"] = grown("nodes", NODES, args.rounds)
    if "instances" in kinds:
        document["instances"] = instances(args.rounds)
    machine.write_result("growth", document, partial=bool(args.kinds))


if __name__ == "__main__":
    main()
