"""Our HTTP/2 layer against `grpc.aio`: serve_http2.py [--rounds 7] [--seconds 3] [--smoke]

The comparison behind docs/decisions/0044. Both servers run the same function for the same messages, in a process with
one event loop (bench/scripts/grpc_echo.py), and take turns: one connection that waits for each answer, many that do, a
tensor of 1 MB. Asked by `h2load` where it is installed, else by grpcio's own client, which costs more than either
server. The bar: at least 1.3 times the requests a second, else the library takes over.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import h2load
import machine
import numpy as np
import serving

from glowplug.core.dtypes import BY_NAME
from glowplug.serve.wire.messages import serving as serving_message

KINDS = ("ours", "grpcio")
CASES = {"small, one connection": ((784,), 1), "small, 16 connections": ((784,), 16), "1 MB": ((512, 512), 2)}
BAR = 1.3


def message(folder: Path, shape: tuple[int, ...]) -> Path:
    """Write a message with one tensor, as bytes, which is how TensorFlow's clients send it; return its file."""
    request = serving_message("PredictRequest")()
    request.model_spec.name = "m"
    tensor, array = request.inputs["x"], np.random.default_rng(1).random((1, *shape)).astype(np.float32)
    tensor.dtype, tensor.tensor_content = BY_NAME["float32"].code, array.tobytes()
    for size in array.shape:
        tensor.tensor_shape.dim.add(size=size)
    target = folder / f"{'x'.join(map(str, shape))}.pb"
    target.write_bytes(request.SerializeToString())
    return target


def load(server: serving.Server, body: Path, connections: int, seconds: float) -> dict[str, Any]:
    """Ask from so many connections, one request at a time on each."""
    if h2load.is_installed():
        return h2load.load(server, "grpc", body, connections=connections, seconds=seconds)
    return serving.load(server, "grpc", body, "--connections", connections, "--seconds", seconds)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--smoke", action="store_true", help="one short round, and keep no result")
    args = parser.parse_args()
    if args.smoke:
        args.rounds, args.seconds = 1, 1.0
    machine.prepare()
    servers: dict[str, serving.Server] = {}
    runs = {case: {kind: list[float]() for kind in KINDS} for case in CASES}
    try:
        for kind in KINDS:
            port = serving.free_port()
            process = subprocess.Popen([sys.executable, serving.SCRIPTS / "grpc_echo.py", kind, str(port)])
            servers[kind] = serving.Server(process, "", f"127.0.0.1:{port}", "", 0.0)
            serving.wait_for_port(port)
        with tempfile.TemporaryDirectory() as folder:
            bodies = {case: message(Path(folder), shape) for case, (shape, _) in CASES.items()}
            for turn in range(args.rounds):
                for case, (_, connections) in CASES.items():
                    for kind in KINDS if turn % 2 == 0 else reversed(KINDS):
                        seen = load(servers[kind], bodies[case], connections, args.seconds)
                        if set(seen["outcomes"]) != {"200"}:
                            sys.exit(f"{kind} answered {seen['outcomes']}")
                        runs[case][kind].append(seen["per_second"])
                    print(case, {kind: taken[-1] for kind, taken in runs[case].items()}, flush=True)
    finally:
        for server in servers.values():
            server.process.terminate()
            server.process.wait()
    ratios = {
        case: round(median(ours / theirs for ours, theirs in zip(taken["ours"], taken["grpcio"], strict=True)), 2)
        for case, taken in runs.items()
    }
    print({"ours / grpcio": ratios, "bar": BAR, "client": "h2load" if h2load.is_installed() else "grpcio"})
    if not args.smoke:
        document = {
            "machine": machine.describe(),
            "client": "h2load" if h2load.is_installed() else "grpcio",
            "bar": BAR,
            "ratios": ratios,
            "runs": runs,
        }
        machine.write_result("serve_http2", document, partial=False)


if __name__ == "__main__":
    main()
