"""Processes of one host that ask for the same model at once: store_fleet.py [MODEL] [--engine native] [--runs 3]

A cold node cache each time; each process loads from S3 and answers a call. Beside it stock: each copies the SavedModel
with s3fs and loads it with `tf.saved_model.load`. Bytes are counted by a relay in front of the server, in runs that
are not timed: for one host, and for two, which are two node caches, for root also two network namespaces behind `tc`.
"""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import bundles
import machine
import models
import network
import storage


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", nargs="?", default="encoder")
    parser.add_argument(
        "--engine", default="native", help="which bundle; auto has packed weights beside the model's own"
    )
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--smoke", action="store_true", help="ours alone, once, and keep no result")
    args = parser.parse_args()
    machine.prepare()
    bundle, source = bundles.bundle(args.model, args.engine), models.saved_model(args.model)
    shape, dtype = models.INPUTS[args.model]
    words = (",".join(map(str, shape)), dtype)
    with storage.storage() as one:
        pushed = storage.glowplug(one.environment(one.cache()), "push", bundle, one.server.url("m/1"))
        ours = [storage.SCRIPTS / "fast.py", one.server.url("m/1"), *words]
        size = pushed["bytes"]
        document: dict[str, Any] = {
            "machine": machine.describe(),
            "model": args.model,
            "engine": args.engine,
            "bundle_bytes": size,
        }
        document["origin"] = origin_bytes(one, ours, args.processes, size)
        print(document["origin"], flush=True)
        runs: dict[str, list[dict[str, float]]] = {"one": [], "all": [], "stock": []}
        if not args.smoke:
            storage.upload(one, source, "stock")
        for _ in range(1 if args.smoke else args.runs):
            runs["one"].append(storage.last_ready_s([ours], one.environment(one.cache())))
            runs["all"].append(storage.last_ready_s([ours] * args.processes, one.environment(one.cache())))
            if not args.smoke:
                stock = [storage.SCRIPTS / "copy_then_load.py", f"{storage.seaweedfs.BUCKET}/stock", *words]
                environment = one.environment(one.cache(), COPIES=str(one.folder))
                runs["stock"].append(storage.last_ready_s([stock] * args.processes, environment))
            print({side: taken[-1] for side, taken in runs.items() if taken}, flush=True)
    if args.smoke:
        return
    document |= {"processes": args.processes, "runs_s": runs}
    for until in ("loaded", "first"):
        middle = {side: median(one[until] for one in taken) for side, taken in runs.items()}
        document[until] = {
            "median_s": middle,
            "all_to_one": round(middle["all"] / middle["one"], 2),
            "times_sooner": round(middle["stock"] / middle["all"], 2),
        }
        print(until, document[until])
    machine.write_result("store_fleet", document, partial=args.model != "encoder")


def origin_bytes(one: storage.Storage, command: Sequence[str | Path], processes: int, size: int) -> dict[str, Any]:
    """Count what the origin sends to one host, and to two."""
    one.count()
    storage.last_ready_s([command] * processes, one.environment(one.cache(), counted=True))
    single = one.count()
    separate = os.geteuid() == 0
    with network.hosts(2) if separate else contextlib.nullcontext([None, None]) as hosts:
        children = []
        for host in hosts:
            environment = one.environment(one.cache(), counted=True)
            if host is not None:
                environment["AWS_ENDPOINT_URL"] = f"http://{host.gateway}:{one.relay.port}"
            children += storage.start([command] * processes, environment, host.prefix if host else ())
        storage.finish(children)
    double = one.count()
    return {
        "hosts_are_namespaces": separate,
        "one_host_bytes": single,
        "one_host_times": round(single / size, 4),
        "two_hosts_bytes": double,
        "two_hosts_times": round(double / size, 4),
    }


if __name__ == "__main__":
    main()
