"""Ours beside what people run instead: serve_peers.py [MODEL] [--workers 2] [--peers PYTHON] [--ray PYTHON]

Time to ready, memory of all processes after the load (PSS), requests a second and latency of a closed REST loop, each
side with as many workers, started anew in each round, one after the other: `glowplug serve`, FastAPI with Keras,
FastAPI with LiteRT, BentoML with Keras, Ray Serve with Keras. The last three need packages that would change this
environment, so they run in others, whose interpreters `--peers` and `--ray`, or GLOWPLUG_BENCH_PEERS and
GLOWPLUG_BENCH_RAY, name:

    uv venv ENV && uv pip install -p ENV bentoml tensorflow-cpu keras ai-edge-litert fastapi uvicorn uvloop httptools
    uv venv RAY && uv pip install -p RAY 'ray[serve]' tensorflow-cpu keras
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import bundles
import h2load
import machine
import serving

KEYS = ("ready_s", "pss_bytes", "per_second", "median_ms", "p99_ms")
PEER_PACKAGES = (
    "bentoml",
    "ray",
    "ai-edge-litert",
    "tensorflow-cpu",
    "tensorflow",
    "keras",
    "fastapi",
    "uvicorn",
    "numpy",
)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", nargs="?", default="dense")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--peers", default=os.environ.get("GLOWPLUG_BENCH_PEERS"), help="an interpreter with the peers")
    parser.add_argument("--ray", default=os.environ.get("GLOWPLUG_BENCH_RAY"), help="an interpreter with Ray Serve")
    parser.add_argument("--smoke", action="store_true", help="one short round, and keep no result")
    args = parser.parse_args()
    if args.smoke:
        args.rounds, args.seconds = 1, 1
    machine.prepare()
    bundle = bundles.bundle(args.model)
    sides: dict[str, Any] = {
        "glowplug": lambda: serving.glowplug(f"m={bundle}", "--instances", args.workers),
        "fastapi_keras": lambda: serving.fastapi_keras(args.model, args.workers),
    }
    if args.peers:
        sides["fastapi_litert"] = lambda: serving.fastapi_litert(args.peers, args.model, args.workers)
        sides["bentoml_keras"] = lambda: serving.bentoml(args.peers, args.model, args.workers)
        serving.litert_file(args.model)
    else:
        print("no --peers: FastAPI with LiteRT and BentoML are left out", file=sys.stderr)
    if args.ray:
        sides["ray_keras"] = lambda: serving.ray_serve(args.ray, args.model, args.workers)
    else:
        print("no --ray: Ray Serve is left out", file=sys.stderr)
    serving.keras_file(args.model)
    os.sync()
    runs: dict[str, list[dict[str, Any]]] = {side: [] for side in sides}
    with tempfile.TemporaryDirectory() as folder:
        body, _ = serving.bodies(args.model, Path(folder))
        for _ in range(args.rounds):
            for side, start in sides.items():
                runs[side].append(measure(start, body, args))
                print(side, runs[side][-1], flush=True)
    if args.smoke:
        return
    summary: dict[str, Any] = {
        side: {key: median(run[key] for run in taken) for key in KEYS} for side, taken in runs.items()
    }
    print(json.dumps(summary, indent=1))
    asked = {key: value for key, value in vars(args).items() if key not in ("peers", "ray", "smoke")}
    document = {
        "machine": machine.describe(),
        "peers": versions(args.peers),
        "ray": versions(args.ray),
        **asked,
        "median": summary,
        "runs": runs,
    }
    machine.write_result("serve_peers", document, partial=args.model != "dense" or not (args.peers and args.ray))


def measure(start: Any, body: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Start a server, load it, and return what was seen."""
    with start() as server:
        seen = h2load.load(server, "rest", body, connections=args.connections, seconds=args.seconds)
        if set(seen["outcomes"]) != {"200"}:
            sys.exit(f"it answered {seen['outcomes']}")
        return {"ready_s": round(server.ready_s, 3), "pss_bytes": server.pss_bytes(), **seen}


def versions(python: str | None) -> dict[str, str]:
    """Return the versions of what the peers' interpreter has."""
    if not python:
        return {}
    code = (
        "import importlib.metadata as m, json, sys; "
        "have = {d.name.lower().replace('_', '-'): d.version for d in m.distributions()}; "
        "print(json.dumps({name: have[name] for name in sys.argv[1:] if name in have}))"
    )
    done = subprocess.run([python, "-c", code, *PEER_PACKAGES], capture_output=True, text=True, check=True)
    found: dict[str, str] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    main()
