"""Workers killed at random, once a second, under load: serve_kill.py [--seconds 60] [--instances 4]"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from pathlib import Path

import bundles
import machine
import psutil
import serving


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--instances", type=int, default=4)
    parser.add_argument("--smoke", action="store_true", help="a short run that keeps no result")
    args = parser.parse_args()
    if args.smoke:
        args.seconds = 4.0
    machine.prepare()
    choose = random.Random(1)
    killed = 0
    with tempfile.TemporaryDirectory() as folder:
        rest, _ = serving.bodies("dense", Path(folder))
        with serving.glowplug(f"m={bundles.bundle('dense')}", "--instances", args.instances) as server:
            client = serving.start_client(server, "rest", rest, "--seconds", args.seconds, "--retry")
            end = time.monotonic() + args.seconds
            while time.monotonic() < end - 1:
                time.sleep(1)
                choose.choice(server.workers()).kill()
                killed += 1
            seen = serving.finish(client)
            deadline = time.monotonic() + 10
            while len(server.workers()) != args.instances and time.monotonic() < deadline:
                time.sleep(0.05)
            left = len(server.workers())
            everyone = psutil.Process(server.process.pid).children(recursive=True)
    remaining = [process.pid for process in everyone if process.is_running()]
    good = seen["outcomes"].get("200", 0) / seen["requests"]
    print({"killed": killed, "good": round(good, 5), "workers": left, "left_behind": remaining, **seen})
    if not args.smoke:
        document = {"machine": machine.describe(), "killed": killed, "good": good, "client": seen}
        machine.write_result("serve_kill", {**document, "workers": left, "left_behind": remaining}, partial=False)


if __name__ == "__main__":
    main()
