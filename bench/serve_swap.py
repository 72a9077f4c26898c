"""Latency while a new version loads, packs and takes over: serve_swap.py [--seconds 60] [--windows 3]

A dense model is served under a steady load of about 30 % of what the server can do. Quiet windows alternate with
windows in which a new version of the encoder, a plain SavedModel of 400 MB, appears beside it: it is loaded, packed
and swapped by the same server.

Beside the latencies each window tells where time went: how long the front end and the workers ran, how long they waited
for a processor (schedstat), what they read from the disk because it was not in the page cache (major faults), how much
of the machine's time others took (steal), and how long the packing ran. The bar: the median over the windows of p99
with a swap is at most twice that of the quiet ones.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import bundles
import machine
import models
import psutil
import serving

BAR = 2.0


def read_events(server: serving.Server) -> list[dict[str, Any]]:
    assert server.log is not None
    return [json.loads(line) for line in server.log.read_text().splitlines() if line.startswith("{")]


class Clock:
    """What the processes of a server spend from its making to `read`."""

    def __init__(self, server: serving.Server) -> None:
        self._supervisor = psutil.Process(server.process.pid)
        self._before, self._machine = self._spent(), _machine_s()

    def read(self) -> dict[str, Any]:
        """Return milliseconds that ran, milliseconds of waiting for a processor, and major faults, by kind."""
        found: dict[str, Any] = {}
        for (kind, pid), now in self._spent().items():
            before = self._before.get((kind, pid), (0, 0, 0))
            one = found.setdefault(kind, {"ran_ms": 0, "waited_ms": 0, "major_faults": 0})
            for key, then, there in zip(one, before, now, strict=True):
                one[key] += there - then
        whole, steal = (now - then for now, then in zip(_machine_s(), self._machine, strict=True))
        return {**found, "steal": round(steal / whole, 3)}

    def _spent(self) -> dict[tuple[str, int], tuple[int, int, int]]:
        children = sorted(self._supervisor.children(recursive=True), key=lambda child: child.pid)
        found = {}
        for child in children:
            try:
                packs = "pack" in child.cmdline()
                kind = "packing" if packs else "front_end" if child.pid == children[0].pid else "workers"
                found[kind, child.pid] = _schedstat(child.pid)
            except (psutil.Error, OSError):
                continue
        return found


def _schedstat(pid: int) -> tuple[int, int, int]:
    ran = waited = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        one = (task / "schedstat").read_text().split()
        ran, waited = ran + int(one[0]), waited + int(one[1])
    faults = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[9]
    return ran // 1_000_000, waited // 1_000_000, int(faults)


def _machine_s() -> tuple[float, float]:
    fields = list(map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]))
    return sum(fields), fields[7]


def wait_packed(server: serving.Server, version: int) -> None:
    """Wait until a version of the new model is served from its bundle, or cannot be."""
    while True:
        for event in read_events(server):
            if event.get("version") == version and event.get("model") == "new":
                if event["event"] == "packed":
                    return
                if event["event"] in ("not_packed", "load_failed"):
                    sys.exit(f"version {version} was not packed: {event}")
        time.sleep(0.1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--windows", type=int, default=3)
    parser.add_argument("--new", default="encoder", help="the model whose versions appear")
    parser.add_argument("--smoke", action="store_true", help="one short window of each kind, and keep no result")
    args = parser.parse_args()
    if args.smoke:
        args.seconds, args.windows, args.new = 4.0, 1, "dense"
    machine.prepare()
    source = models.saved_model(args.new)
    quiet: list[dict[str, Any]] = []
    busy: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rest, _ = serving.bodies("dense", folder)
        versions = folder / "versions"
        shutil.copytree(source, versions / "1")
        arguments = [f"m={bundles.bundle('dense')}", f"new={versions}", "--pack-cache", folder / "cache"]
        with serving.glowplug(*arguments) as server:
            wait_packed(server, 1)
            fastest = serving.load(server, "rest", rest, "--seconds", 3)["per_second"]
            rate = ["--rate", round(0.3 * fastest, 1), "--seconds", args.seconds]
            for number in range(args.windows):
                clock = Clock(server)
                quiet.append(serving.load(server, "rest", rest, *rate) | {"spent": clock.read()})
                clock = Clock(server)
                client = serving.start_client(server, "rest", rest, *rate)
                hidden = versions / f".{number + 2}"
                shutil.copytree(source, hidden)
                hidden.rename(versions / str(number + 2))
                busy.append(serving.finish(client) | {"spent": clock.read()})
                wait_packed(server, number + 2)
                print({"quiet": quiet[-1], "busy": busy[-1]}, flush=True)
            events = read_events(server)
    seen = [(event["event"], event.get("version")) for event in events if event.get("model") == "new"]
    ratio = round(median(one["p99_ms"] for one in busy) / median(one["p99_ms"] for one in quiet), 2)
    failed = [one["outcomes"] for one in (*quiet, *busy) if set(one["outcomes"]) != {"200"}]
    print(seen)
    print({"p99 with a swap / quiet": ratio, "bar": BAR, "failed": failed})
    if not args.smoke:
        document = {"machine": machine.describe(), "rate": rate[1], "quiet": quiet, "busy": busy, "events": seen}
        document |= {"ratio": ratio, "bar": BAR, "seconds": args.seconds}
        machine.write_result("serve_swap", document, partial=False)


if __name__ == "__main__":
    main()
