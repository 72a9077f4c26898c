"""Requests a second of the HTTP layer alone, three servers with the same trivial answer: serve_http.py [--rounds 5]"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import machine
import serving

KINDS = ("ours", "asgi", "starlette")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--smoke", action="store_true", help="one round, and keep no result")
    args = parser.parse_args()
    machine.prepare()
    servers, runs = [], {kind: list[float]() for kind in KINDS}
    try:
        for kind in KINDS:
            port = serving.free_port()
            process = subprocess.Popen([sys.executable, serving.SCRIPTS / "http_echo.py", kind, str(port)])
            serving.wait_for_port(port)
            servers.append(serving.Server(process, f"127.0.0.1:{port}", "", "", 0.0))
        with tempfile.NamedTemporaryFile(suffix=".json") as body:
            body.write(b'{"instances": [[' + b"0.123456, " * 783 + b"0.5]]}")
            body.flush()
            for _ in range(1 if args.smoke else args.rounds):
                for kind, server in zip(KINDS, servers, strict=True):
                    seen = serving.load(server, "rest", Path(body.name), "--seconds", args.seconds)
                    if set(seen["outcomes"]) != {"200"}:
                        sys.exit(f"{kind} answered {seen['outcomes']}")
                    runs[kind].append(seen["per_second"])
                print({kind: taken[-1] for kind, taken in runs.items()}, flush=True)
    finally:
        for server in servers:
            server.process.terminate()
            server.process.wait()
    if not args.smoke:
        medians = {kind: median(taken) for kind, taken in runs.items()}
        machine.write_result(
            "serve_http", {"machine": machine.describe(), "median": medians, "runs": runs}, partial=False
        )


if __name__ == "__main__":
    main()
