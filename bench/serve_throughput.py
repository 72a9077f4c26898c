"""Requests a second and latency under a closed loop: serve_throughput.py [MODEL] [--workers 2] [--rounds 5]

REST and gRPC of `glowplug serve`, the same with `--enable_batching`, and FastAPI with Keras, each with as many workers;
short turns, one after the other, all of them asked by `h2load` over as many connections.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import bundles
import h2load
import machine
import serving


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", nargs="?", default="dense")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--smoke", action="store_true", help="one short round, and keep no result")
    args = parser.parse_args()
    if args.smoke:
        args.rounds, args.seconds = 1, 1
    h2load.require()
    machine.prepare()
    bundle = bundles.bundle(args.model)
    kinds = ("rest", "grpc", "rest_batching", "grpc_batching", "fastapi_keras")
    runs: dict[str, list[dict[str, Any]]] = {kind: [] for kind in kinds}
    with tempfile.TemporaryDirectory() as folder:
        rest, grpc = serving.bodies(args.model, Path(folder))
        with (
            serving.glowplug(f"m={bundle}", "--instances", args.workers) as ours,
            serving.glowplug(f"m={bundle}", "--instances", args.workers, "--enable_batching") as batching,
            serving.fastapi_keras(args.model, args.workers) as theirs,
        ):
            turns = (
                ("rest", ours, "rest", rest),
                ("grpc", ours, "grpc", grpc),
                ("rest_batching", batching, "rest", rest),
                ("grpc_batching", batching, "grpc", grpc),
                ("fastapi_keras", theirs, "rest", rest),
            )
            for _ in range(args.rounds):
                for side, server, protocol, body in turns:
                    seen = h2load.load(server, protocol, body, connections=args.connections, seconds=args.seconds)
                    runs[side].append(seen)
                print(
                    {side: (taken[-1]["per_second"], taken[-1]["p99_ms"]) for side, taken in runs.items()}, flush=True
                )
    for side, taken in runs.items():
        if any(set(run["outcomes"]) != {"200"} for run in taken):
            sys.exit(f"{side} answered {[run['outcomes'] for run in taken]}")
    if args.smoke:
        return
    summary = {
        side: {key: median(run[key] for run in taken) for key in ("per_second", "median_ms", "p99_ms")}
        for side, taken in runs.items()
    }
    print(summary)
    document = {"machine": machine.describe(), **vars(args), "median": summary, "runs": runs}
    machine.write_result("serve_throughput", document, partial=args.model != "dense")


if __name__ == "__main__":
    main()
