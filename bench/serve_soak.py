"""Memory, descriptors and answers under mixed load while versions come and go: serve_soak.py [--seconds 1800]

REST and gRPC at once, good requests and bad ones, small tensors and large ones, to one model that stays and to one of
which a new version appears every `--every` seconds: a plain SavedModel, which the server packs, and a bundle in turns.
The older version is deleted once the new one answers. The bars: every good request is answered with 200, and from the
second fifth of the run to the last the memory and the descriptors grow by no more than `BARS`.
"""

from __future__ import annotations

import argparse
import http.client
import json
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

import bundles
import machine
import models
import psutil
import serving

BARS = {"supervisor_bytes": 8 << 20, "front_end_bytes": 16 << 20, "all_bytes": 48 << 20, "descriptors": 4}


class Versions:
    """Puts versions into a folder and takes them out again, until it is stopped."""

    def __init__(self, folder: Path, every_s: float) -> None:
        self._folder, self._every_s = folder, every_s
        self._sources = [models.saved_model("dense"), bundles.bundle("dense")]
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.address, self.newest, self.problem = "", 0, ""
        self.seconds: list[float] = []  # until each was served
        self._add()

    def start(self, address: str) -> None:
        self.address = address
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _add(self) -> None:
        self.newest += 1
        hidden = self._folder / f".{self.newest}"
        shutil.copytree(self._sources[self.newest % 2], hidden)
        hidden.rename(self._folder / str(self.newest))

    def _run(self) -> None:
        while not self._stop.wait(self._every_s):
            began = time.monotonic()
            self._add()
            while not self._stop.is_set() and self._state(self.newest) != "AVAILABLE":
                if time.monotonic() - began > 300:
                    self.problem = f"version {self.newest} is {self._state(self.newest)} after 300 s"
                    return
                time.sleep(0.2)
            self.seconds.append(round(time.monotonic() - began, 2))
            shutil.rmtree(self._folder / str(self.newest - 1))

    def _state(self, number: int) -> str:
        connection = http.client.HTTPConnection(self.address, timeout=60)
        connection.request("GET", f"/v1/models/v/versions/{number}")
        document = json.loads(connection.getresponse().read())
        connection.close()
        return str(document.get("model_version_status", [{}])[0].get("state", "unknown"))


class Look:
    """Looks at what the processes of a server hold. Memory is what is not a file's: pages of libraries count as private
    or not by what else runs on the machine. What packs a model is left out, since it comes and goes, and so are
    connections of clients.
    """

    def __init__(self, server: serving.Server) -> None:
        self._supervisor = psutil.Process(server.process.pid)
        self._front = min(self._supervisor.children(), key=lambda child: child.pid)  # forked first

    def __call__(self) -> dict[str, Any]:
        words = self._supervisor.cmdline()
        found = {"all_bytes": 0, "descriptors": 0, "processes": 0}
        for process in (self._supervisor, *self._supervisor.children()):
            try:
                if process.cmdline() != words:
                    continue
                found["all_bytes"] += _field(process.pid, "smaps_rollup", "Pss_Anon")
                found["processes"] += 1
            except (psutil.Error, OSError):  # workers may end while they are looked at
                continue
        for name, process in (("supervisor_bytes", self._supervisor), ("front_end_bytes", self._front)):
            found[name] = _field(process.pid, "status", "RssAnon")
            found["descriptors"] += process.num_fds() - _clients(process)
        return found


def _clients(process: psutil.Process) -> int:
    """Count connections that clients hold: they open more of them when answers are late."""
    return sum(one.status == psutil.CONN_ESTABLISHED for one in process.net_connections("tcp"))


def _field(pid: int, name: str, key: str) -> int:
    lines = Path(f"/proc/{pid}/{name}").read_text().splitlines()
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{key}:")), 0)


def growth(series: list[dict[str, Any]]) -> dict[str, float]:
    """Return by how much the middle of the last fifth is above that of the fifth behind the first."""
    fifth = max(1, len(series) // 5)
    begin, end = series[fifth : 2 * fifth] or series, series[-fifth:]
    return {key: median(one[key] for one in end) - median(one[key] for one in begin) for key in BARS}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=1800.0)
    parser.add_argument("--every", type=float, default=20.0, help="seconds from one version to the next")
    parser.add_argument("--smoke", action="store_true", help="a short run that keeps no result")
    args = parser.parse_args()
    if args.smoke:
        args.seconds, args.every = 20.0, 2.0
    machine.prepare()
    series = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rest, grpc = serving.bodies("dense", folder)
        bad, large = folder / "bad.json", folder / "large.json"
        bad.write_text(json.dumps({"instances": [["x"] * 784]}))
        large.write_text(json.dumps({"instances": json.loads(rest.read_text())["instances"] * 64}))
        versions = Versions(folder / "versions", args.every)
        named = [f"m={bundles.bundle('dense')}", f"v={folder / 'versions'}", "--pack-cache", folder / "cache"]
        with serving.glowplug(*named, "--instances", 2) as server:
            mixed = [
                ("m", "rest", rest, 40, "200"),
                ("m", "grpc", grpc, 40, "200"),
                ("m", "rest", bad, 20, "400"),
                ("m", "rest", large, 5, "200"),
                ("v", "rest", rest, 40, "200"),
            ]
            look, began = Look(server), time.monotonic()
            clients = [
                serving.start_client(server, protocol, body, "--rate", rate, "--seconds", args.seconds, model=model)
                for model, protocol, body, rate, _ in mixed
            ]
            versions.start(server.rest)
            while any(client.poll() is None for client in clients):
                series.append({"s": round(time.monotonic() - began, 1), **look()})
                time.sleep(min(5.0, args.seconds / 12))
            seen = [serving.finish(client) for client in clients]
            versions.stop()
            log = Counter(json.loads(line)["event"] for line in server.log.read_text().splitlines() if line[:1] == "{")
    grown = growth(series)
    missed = [key for key, bar in BARS.items() if grown[key] > bar]
    missed += [
        f"answers of {one[:3]}" for one, client in zip(mixed, seen, strict=True) if set(client["outcomes"]) != {one[4]}
    ]
    missed += [versions.problem] if versions.problem else []
    print({"growth": grown, "versions": versions.newest, "events": dict(log), "missed": missed})
    print([client["outcomes"] for client in seen])
    if not args.smoke:
        document = {
            "machine": machine.describe(),
            "bars": BARS,
            "growth": grown,
            "missed": missed,
            "versions": versions.newest,
            "served_after_s": versions.seconds,
            "events": dict(log),
            "clients": seen,
            "series": series,
        }
        machine.write_result("serve_soak", document, partial=args.seconds < 1800)
    if missed:
        sys.exit(1)


if __name__ == "__main__":
    main()
