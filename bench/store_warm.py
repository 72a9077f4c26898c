"""A warm node cache: load(url) beside load(path), in fresh processes, in turn: store_warm.py [MODEL] [--runs 15]

Pinned, which asks nothing of the origin, and not, which asks for the description.
"""

from __future__ import annotations

import argparse
from statistics import median

import bundles
import machine
import models
import storage


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", nargs="?", default="encoder")
    parser.add_argument("--runs", type=int, default=15)
    args = parser.parse_args()
    machine.prepare()
    bundle = bundles.bundle(args.model, "native")
    shape, dtype = models.INPUTS[args.model]
    words = (",".join(map(str, shape)), dtype)
    runs: dict[str, list[float]] = {"path": [], "pinned": [], "url": []}
    with storage.storage() as one:
        cache = one.cache()
        environment = one.environment(cache)
        digest = storage.glowplug(environment, "push", bundle, one.server.url("m/1"))["digest"]
        path = storage.glowplug(environment, "pull", one.server.url("m/1"))["path"]
        sides = {"path": path, "pinned": f"{one.server.url('m/1')}@{digest}", "url": one.server.url("m/1")}
        one.count()
        storage.last_ready_s(
            [[storage.SCRIPTS / "fast.py", sides["pinned"], *words]], one.environment(cache, counted=True)
        )
        requests = one.count()
        for _ in range(args.runs):
            for side, where in sides.items():
                (document,) = storage.finish(storage.start([[storage.SCRIPTS / "fast.py", where, *words]], environment))
                runs[side].append((document["loaded_at_ns"] - document["imported_at_ns"]) / 1e6)
    middle = {side: round(median(taken), 2) for side, taken in runs.items()}
    document = {
        "machine": machine.describe(),
        "median_load_ms": middle,
        "pinned_slower_ms": round(middle["pinned"] - middle["path"], 2),
        "url_slower_ms": round(middle["url"] - middle["path"], 2),
        "bytes_from_origin_when_pinned": requests,
        "runs_ms": runs,
    }
    print({key: value for key, value in document.items() if key not in ("machine", "runs_ms")})
    machine.write_result("store_warm", document, partial=args.model != "encoder")


if __name__ == "__main__":
    main()
