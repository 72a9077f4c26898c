"""How cost grows with a model and with its instances: growth.py [weights|nodes|instances ...] [--rounds 5]

weights: 10 MB to 2 GB. nodes: 50 to 5,000 operations. instances: 1 to 16 processes with one model on this machine,
their memory in all, and the time until the last has answered when all are started at once.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import machine
import run
import sources

from glowplug.bench.contestant import Contestant, ContestantError, Question, Running
from glowplug.bench.contestants.start import now_ns
from glowplug.bench.peers import PEERS
from glowplug.bench.preparation import Preparation, Source
from glowplug.convert.example import make_example

MEGABYTES = (10, 100, 500, 2_000)
NODES = (50, 500, 5_000)
INSTANCES = (1, 2, 4, 8, 16)
INSTANCE_MODELS = ("resnet50", "encoder")
LIMIT_S = 600.0


def grown(kind: str, sizes: tuple[int, ...], rounds: int) -> dict[str, Any]:
    results = {}
    for size in sizes:
        document = run.bench(f"{kind}-{size}", rounds)
        results[str(size)] = document
        print(run.line(f"{kind} {size}", document), flush=True)
    return results


def instances(rounds: int) -> dict[str, Any]:
    results: dict[str, Any] = {}
    for name in INSTANCE_MODELS:
        with tempfile.TemporaryDirectory(prefix="glowplug-bench-") as folder:
            scratch, model = Path(folder), sources.path_of(name)
            example = make_example(model, scratch)
            source = Source(model, example.saved_model, example.signature)
            preparation = Preparation(source, scratch, machine.ROOT / ".venvs", limit_s=LIMIT_S)
            preparation.choose()
            question = Question(example.signature, example.inputs)
            results[name] = {}
            for peer in PEERS:
                contestant = preparation.contestant(peer)
                if isinstance(contestant, Contestant):
                    results[name][peer.name] = counts(contestant, question, rounds)
                else:
                    results[name][peer.name] = {"failed": contestant.reason}
                chosen = "*" if peer.name == preparation.chosen else ""
                print(f"{name} {peer.name}{chosen} {summary(results[name][peer.name])}", flush=True)
    return results


def summary(one: dict[str, Any]) -> str:
    if "failed" in one:
        return str(one["failed"])
    parts = []
    for count, runs in one.items():
        total = sorted(each["pss_bytes"] for each in runs)[len(runs) // 2]
        ready = sorted(each["ready_ns"] for each in runs)[len(runs) // 2]
        parts.append(f"{count}: {total / 1e6:.0f} MB {ready / 1e9:.2f} s")
    return ", ".join(parts)


def counts(contestant: Contestant, question: Question, rounds: int) -> dict[str, Any]:
    """Return the rounds of each number of instances that this machine has the memory for."""
    found: dict[str, Any] = {}
    os.sync()
    try:
        one = together(contestant, question, 1)
        for count in INSTANCES:
            if count * one["private_bytes"] > available_bytes() // 2:
                break
            found[str(count)] = [together(contestant, question, count) for _ in range(rounds)]
    except ContestantError as error:
        return {"failed": str(error)}
    return found


def together(contestant: Contestant, question: Question, count: int) -> dict[str, Any]:
    """Start all at once; return when the last has answered, and their memory."""
    failures: list[ContestantError] = []
    started: list[Running] = []

    def start() -> None:
        try:
            started.append(Running(contestant, question, threads=2, limit_s=LIMIT_S))
        except ContestantError as error:
            failures.append(error)

    began = now_ns()
    threads = [threading.Thread(target=start) for _ in range(count)]
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", choices=("weights", "nodes", "instances", []), metavar="KIND")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    machine.prepare()
    kinds = args.kinds or ["weights", "nodes", "instances"]
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
