"""Closed-loop load by nghttp2's `h2load`: it costs little, and the same for HTTP/1.1 and HTTP/2.

What it reports has the form of `serve_client.py`, which stays the generator of open loops.
"""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

import serving

PREDICT = "/tensorflow.serving.PredictionService/Predict"
WARM_UP_SECONDS = 1


def is_installed() -> bool:
    """Say whether the tool is there."""
    return shutil.which("h2load") is not None


def require() -> None:
    """End with a hint where the tool is missing."""
    if not is_installed():
        sys.exit("h2load is missing: install it with `apt-get install nghttp2-client`")


def framed(message: Path) -> Path:
    """Write a gRPC message with its prefix beside it; return the file."""
    data = message.read_bytes()
    target = message.with_suffix(".grpc")
    target.write_bytes(struct.pack(">BI", 0, len(data)) + data)
    return target


def answer_bytes(server: serving.Server, message: Path) -> int:
    """Make one real call, which raises where its status is not OK; return the length of the answer on the wire."""
    import grpc

    with grpc.insecure_channel(server.grpc) as channel:
        return len(channel.unary_unary(PREDICT)(message.read_bytes(), timeout=60)) + 5


def load(
    server: serving.Server, protocol: str, body: Path, *, connections: int, seconds: float, model: str = "m"
) -> dict[str, Any]:
    """Ask from so many connections, one request at a time on each, after a second that does not count."""
    if protocol == "rest":
        options = ["--h1", "-d", body, "-H", "content-type: application/json"]
        url, expected = f"http://{server.rest}{server.path or f'/v1/models/{model}:predict'}", 0
    else:
        options = ["-m", 1, "-d", framed(body), "-H", "content-type: application/grpc", "-H", "te: trailers"]
        url, expected = f"http://{server.grpc}{PREDICT}", answer_bytes(server, body)
    with tempfile.NamedTemporaryFile("r", suffix=".tsv") as log:
        command = ["h2load", "-c", connections, "-t", 1, *options]
        _run([*command, "-D", WARM_UP_SECONDS, url])
        output = _run([*command, "-D", max(1, round(seconds)), "--log-file", log.name, url])
        lines = [line.split("\t") for line in log.read().splitlines()]
    requests = _number(output, r"requests: \d+ total, \d+ started, (\d+) done")
    received = _number(output, r"headers .*?\((\d+)\) data")
    if expected and not 0 <= received - requests * expected <= connections * expected:  # an error has no data
        sys.exit(f"some calls did not get the answer of {expected} bytes: {output}")
    times = sorted(int(line[2]) / 1000 for line in lines)
    outcomes = Counter(line[1] if line[1] != "-1" else "connection lost" for line in lines)
    return {
        "requests": requests,
        "per_second": round(requests / max(1, round(seconds)), 1),
        "outcomes": dict(outcomes),
        "retried": 0,
        "median_ms": round(median(times), 3),
        "p99_ms": round(times[min(len(times) - 1, int(len(times) * 0.99))], 3),
        "max_ms": round(times[-1], 3),
    }


def _run(command: list[Any]) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"h2load failed: {done.stdout}{done.stderr}")
    return done.stdout


def _number(text: str, pattern: str) -> int:
    found = re.search(pattern, text)
    if found is None:
        sys.exit(f"h2load failed: {text}")
    return int(found[1])
