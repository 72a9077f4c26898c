"""Clients that mean harm beside one that does not: serve_attacks.py [--seconds 10] [--only ATTACK] [--report FILE]

One server with its default bounds and one model. For each attack, in turn: an ordinary client sends 50 requests a
second, a probe asks for `/healthz` all the while, and the attackers do their worst from processes of their own. The
bars: p99 of the ordinary client and the longest `/healthz` under 250 ms, the front end under 300 MB.
"""

from __future__ import annotations

import argparse
import http.client
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import bundles
import machine
import psutil
import serving

sys.path.insert(0, str(serving.SCRIPTS))
import attacker

RATE = 50
BARS = {"p99_ms": 250.0, "healthz_ms": 250.0, "front_end_mb": 300.0}
_MEGABYTE = 1e6


class Watch:
    """Asks for liveness and looks at the front end's memory, until it is stopped."""

    def __init__(self, server: serving.Server) -> None:
        self._address = server.rest
        self._front = min(psutil.Process(server.process.pid).children(), key=lambda child: child.pid)
        self._stop = threading.Event()
        self.longest_s, self.answers, self.largest_bytes = 0.0, 0, 0
        self._threads = [threading.Thread(target=work) for work in (self._probe, self._weigh)]

    def __enter__(self) -> Watch:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _probe(self) -> None:
        while not self._stop.wait(0.01):
            began = time.perf_counter()
            connection = http.client.HTTPConnection(self._address, timeout=120)
            connection.request("GET", "/healthz")
            assert connection.getresponse().status == 200
            connection.close()
            self.longest_s = max(self.longest_s, time.perf_counter() - began)
            self.answers += 1

    def _weigh(self) -> None:
        while not self._stop.wait(0.02):
            self.largest_bytes = max(self.largest_bytes, self._front.memory_info().rss)


def measure(server: serving.Server, name: str, body: Path, seconds: float) -> dict[str, Any]:
    """Run one attack, or none, and return what others saw of it."""
    with Watch(server) as watch:
        words = [sys.executable, serving.SCRIPTS / "attacker.py", name, server.rest, server.grpc, str(seconds)]
        attack = None if name == "none" else subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE)
        try:
            if attack is not None and attack.stdout is not None and not attack.stdout.readline():
                sys.exit(f"the attack {name} did not begin")
            client = serving.load(server, "rest", body, "--rate", RATE, "--seconds", seconds)
        finally:
            if attack is not None:
                attack.terminate()
                attack.communicate()
    found = {
        "attack": name,
        "p99_ms": client["p99_ms"],
        "median_ms": client["median_ms"],
        "outcomes": client["outcomes"],
        "healthz_ms": round(watch.longest_s * 1000, 1),
        "probes": watch.answers,
        "front_end_mb": round(watch.largest_bytes / _MEGABYTE, 1),
    }
    missed = [key for key, bar in BARS.items() if found[key] >= bar]
    return {**found, "missed": missed + ([] if set(client["outcomes"]) == {"200"} else ["outcomes"])}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--only", action="append", choices=["none", *attacker.ATTACKS])
    parser.add_argument("--report", type=Path, help="write what was seen there, and not to bench/results")
    args = parser.parse_args()
    machine.prepare()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        body, _ = serving.bodies("dense", Path(folder))
        with serving.glowplug(f"m={bundles.bundle('dense')}") as server:
            for name in args.only or ["none", *attacker.ATTACKS]:
                rows.append(measure(server, name, body, args.seconds))
                print(rows[-1], flush=True)
    document = {"machine": machine.describe(), "seconds": args.seconds, "bars": BARS, "attacks": rows}
    if args.report is not None:
        args.report.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    else:
        machine.write_result("serve_attacks", document, partial=bool(args.only))
    if any(row["missed"] for row in rows):
        sys.exit(1)


if __name__ == "__main__":
    main()
