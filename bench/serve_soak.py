"""Private memory and descriptors over minutes of mixed load: serve_soak.py [--seconds 300]

REST and gRPC at once, good requests and bad ones, small tensors and large ones.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import bundles
import machine
import serving


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--smoke", action="store_true", help="a short run that keeps no result")
    args = parser.parse_args()
    if args.smoke:
        args.seconds = 6.0
    machine.prepare()
    series = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rest, grpc = serving.bodies("dense", folder)
        bad, large = folder / "bad.json", folder / "large.json"
        bad.write_text(json.dumps({"instances": [["x"] * 784]}))
        large.write_text(json.dumps({"instances": json.loads(rest.read_text())["instances"] * 64}))
        with serving.glowplug(f"m={bundles.bundle('dense')}", "--instances", 2) as server:
            mixed = [("rest", rest, 40), ("grpc", grpc, 40), ("rest", bad, 20), ("rest", large, 5)]
            began = time.monotonic()
            clients = [
                serving.start_client(server, protocol, body, "--rate", rate, "--seconds", args.seconds)
                for protocol, body, rate in mixed
            ]
            while any(client.poll() is None for client in clients):
                elapsed = round(time.monotonic() - began, 1)
                series.append({"s": elapsed, "bytes": server.private_bytes(), "descriptors": server.descriptors()})
                time.sleep(min(5.0, args.seconds / 6))
            seen = [serving.finish(client) for client in clients]
    warm = [point for point in series if point["s"] > args.seconds / 5] or series
    growth = warm[-1]["bytes"] - warm[0]["bytes"]
    print({"growth_bytes": growth, "descriptors": [warm[0]["descriptors"], warm[-1]["descriptors"]]})
    print([client["outcomes"] for client in seen])
    if not args.smoke:
        document = {"machine": machine.describe(), "growth_bytes": growth, "series": series, "clients": seen}
        machine.write_result("serve_soak", document, partial=False)


if __name__ == "__main__":
    main()
