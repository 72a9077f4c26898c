"""From start to every worker warm, and the memory of all processes: serve_ready.py [MODEL] [--instances 8] [--runs 3]

`glowplug serve` of a packed model beside FastAPI with Keras and as many workers, taken in turns.
"""

from __future__ import annotations

import argparse
import os
from statistics import median
from typing import Any

import bundles
import machine
import serving


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", nargs="?", default="resnet50")
    parser.add_argument("--instances", type=int, default=8)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--smoke", action="store_true", help="ours alone, once, and keep no result")
    args = parser.parse_args()
    machine.prepare()
    bundle = bundles.bundle(args.model)
    os.sync()
    runs: dict[str, list[dict[str, Any]]] = {"glowplug": [], "fastapi_keras": []}
    for _ in range(1 if args.smoke else args.runs):
        with serving.glowplug(f"m={bundle}", "--instances", args.instances) as server:
            runs["glowplug"].append({"ready_s": round(server.ready_s, 3), "pss_bytes": server.pss_bytes()})
        print(runs["glowplug"][-1], flush=True)
        if args.smoke:
            continue
        with serving.fastapi_keras(args.model, args.instances) as server:
            runs["fastapi_keras"].append({"ready_s": round(server.ready_s, 3), "pss_bytes": server.pss_bytes()})
        print(runs["fastapi_keras"][-1], flush=True)
    if args.smoke:
        return
    summary = {
        side: {key: median(run[key] for run in taken) for key in ("ready_s", "pss_bytes")}
        for side, taken in runs.items()
    }
    summary["ratio"] = {
        key: round(summary["fastapi_keras"][key] / summary["glowplug"][key], 2) for key in ("ready_s", "pss_bytes")
    }
    print(summary)
    document = {"machine": machine.describe(), "model": args.model, "instances": args.instances}
    machine.write_result("serve_ready", {**document, "median": summary, "runs": runs}, partial=False)


if __name__ == "__main__":
    main()
