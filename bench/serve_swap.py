"""Latency while a new version loads, packs and takes over: serve_swap.py [--seconds 60] [--windows 3]

A dense model is served under a steady load of about 30 % of what the server can do. Quiet windows alternate with
windows in which a new version of the encoder, a plain SavedModel of 400 MB, appears beside it: it is loaded, packed
and swapped by the same server.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import bundles
import machine
import models
import serving


def read_events(server: serving.Server) -> list[dict[str, Any]]:
    assert server.log is not None
    return [json.loads(line) for line in server.log.read_text().splitlines() if line.startswith("{")]


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
                quiet.append(serving.load(server, "rest", rest, *rate))
                client = serving.start_client(server, "rest", rest, *rate)
                hidden = versions / f".{number + 2}"
                shutil.copytree(source, hidden)
                hidden.rename(versions / str(number + 2))
                busy.append(serving.finish(client))
                wait_packed(server, number + 2)
                print({"quiet": quiet[-1], "busy": busy[-1]}, flush=True)
            events = read_events(server)
    seen = [(event["event"], event.get("version")) for event in events if event.get("model") == "new"]
    print(seen)
    if not args.smoke:
        document = {"machine": machine.describe(), "rate": rate[1], "quiet": quiet, "busy": busy, "events": seen}
        machine.write_result("serve_swap", document, partial=False)


if __name__ == "__main__":
    main()
