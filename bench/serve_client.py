"""A load generator in a process of its own: closed loop (N connections that ask as fast as they are answered) or open
loop (requests at a fixed rate, whatever the answers take), over REST or gRPC. Prints one JSON line.

    python bench/serve_client.py rest 127.0.0.1:8501 dense body.json --connections 16 --seconds 5
    python bench/serve_client.py grpc 127.0.0.1:8500 dense request.pb --rate 50 --seconds 60 --retry
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any


class RestClient:
    """One keep-alive connection, spoken to in plain HTTP/1.1 so that the client costs little."""

    def __init__(self, address: str, path: str, body: bytes) -> None:
        host, _, port = address.rpartition(":")
        self._host, self._port = host, int(port)
        head = f"POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n"
        self._request = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
        self._reader: Any = None

    async def ask(self) -> str:
        if self._reader is not None and self._reader.at_eof():  # closed by the server while it was idle
            self._writer.close()
            self._reader = None
        if self._reader is None:
            self._reader, self._writer = await asyncio.open_connection(self._host, self._port, limit=1 << 26)
        try:
            self._writer.write(self._request)
            head = await self._reader.readuntil(b"\r\n\r\n")
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            await self._reader.readexactly(int(length.split(b":")[1]))
            return head[9:12].decode()
        except (OSError, asyncio.IncompleteReadError):
            self._writer.close()
            self._reader = None
            return "connection lost"


class GrpcClient:
    """One channel."""

    def __init__(self, address: str, body: bytes) -> None:
        import grpc

        options = [("grpc.max_receive_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]
        self._channel = grpc.aio.insecure_channel(address, options=options)
        self._call = self._channel.unary_unary("/tensorflow.serving.PredictionService/Predict")
        self._body, self._error = body, grpc.RpcError

    async def ask(self) -> str:
        try:
            await self._call(self._body, timeout=60)
        except self._error as error:
            return str(error.code().name)
        return "200"


RETRYABLE = ("503", "429", "UNAVAILABLE", "RESOURCE_EXHAUSTED")


class Run:
    def __init__(self, retry: bool) -> None:
        self.retry, self.retried = retry, 0
        self.latencies: list[tuple[float, float]] = []
        self.outcomes: Counter[str] = Counter()

    async def one(self, client: Any) -> None:
        began = time.perf_counter()
        outcome = await client.ask()
        if self.retry and outcome in RETRYABLE:
            self.retried += 1
            outcome = await client.ask()
        ended = time.perf_counter()
        self.outcomes[outcome] += 1
        self.latencies.append((ended, ended - began))

    def summary(self, seconds: float) -> dict[str, Any]:
        values = sorted(latency for _, latency in self.latencies)
        return {
            "requests": len(values),
            "per_second": round(len(values) / seconds, 1),
            "outcomes": dict(self.outcomes),
            "retried": self.retried,
            "median_ms": round(1000 * median(values), 3) if values else None,
            "p99_ms": round(1000 * values[min(len(values) - 1, int(len(values) * 0.99))], 3) if values else None,
            "max_ms": round(1000 * values[-1], 3) if values else None,
        }


async def closed(args: argparse.Namespace, make: Any, run: Run) -> float:
    clients = [make() for _ in range(args.connections)]
    await asyncio.gather(*(client.ask() for client in clients))  # connected, and not counted
    began = time.perf_counter()
    end = began + args.seconds

    async def loop(client: Any) -> None:
        while time.perf_counter() < end:
            await run.one(client)

    await asyncio.gather(*(loop(client) for client in clients))
    return time.perf_counter() - began


async def opened(args: argparse.Namespace, make: Any, run: Run) -> float:
    idle = [make() for _ in range(args.connections)]
    tasks: set[asyncio.Task[None]] = set()

    async def ask() -> None:
        client = idle.pop() if idle else make()
        await run.one(client)
        idle.append(client)

    began = time.perf_counter()
    for number in range(int(args.rate * args.seconds)):
        await asyncio.sleep(max(0.0, began + number / args.rate - time.perf_counter()))
        task = asyncio.ensure_future(ask())
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    await asyncio.gather(*tasks)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("protocol", choices=("rest", "grpc"))
    parser.add_argument("address")
    parser.add_argument("model")
    parser.add_argument("body", type=Path)
    parser.add_argument("--path", help="REST path, where it is not TensorFlow Serving's")
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rate", type=float, help="requests a second: an open loop")
    parser.add_argument("--retry", action="store_true", help="ask once more after an error that may be retried")
    args = parser.parse_args()
    body = args.body.read_bytes()
    path = args.path or f"/v1/models/{args.model}:predict"

    def make() -> Any:
        return RestClient(args.address, path, body) if args.protocol == "rest" else GrpcClient(args.address, body)

    import uvloop

    run = Run(args.retry)
    loop = uvloop.new_event_loop()
    asyncio.set_event_loop(loop)
    seconds = loop.run_until_complete((opened if args.rate else closed)(args, make, run))
    print(json.dumps(run.summary(seconds)))


if __name__ == "__main__":
    main()
