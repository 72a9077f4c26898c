"""Should calls of one LiteRT model take turns, or should there be a model for each thread?

    python bench/litert_calls.py MODEL.tflite [--calls 40]

For each of LiteRT's interfaces, calls per second of two Python threads: with one model whose calls take turns and use
all cores, and with two models that use half of them each. Prints one JSON document.
"""

from __future__ import annotations

import argparse
import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from glowplug.bundle.tflite.model import check_tflite_file
from glowplug.core.manifest import LiteRTSettings
from glowplug.loader.engines.litert import LiteRTCalls
from glowplug.loader.engines.tflite_file import open_tflite, signatures_of

THREADS = 2


def open_model(path: Path, interface: str, threads: int) -> Callable[[], object]:
    file = open_tflite(path)
    model = check_tflite_file(file)
    signatures = signatures_of(model)
    engine = LiteRTCalls(file, model, signatures, LiteRTSettings(interface), threads)
    name = next(iter(signatures))
    inputs = [
        np.ones([size or 1 for size in p.spec.shape or ()], p.spec.dtype) for p in signatures[name].inputs.values()
    ]
    return lambda: engine.run(name, inputs)


def calls_per_second(models: list[Callable[[], object]], calls: int) -> float:
    for call in models:
        call()

    def repeat(call: Callable[[], object]) -> None:
        for _ in range(calls):
            call()

    workers = [threading.Thread(target=repeat, args=(models[place % len(models)],)) for place in range(THREADS)]
    began = time.perf_counter()
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    return THREADS * calls / (time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--calls", type=int, default=40)
    args = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    found = {}
    for interface in ("declared", "interpreter"):
        shared = [open_model(args.model, interface, cores)]
        apart = [open_model(args.model, interface, max(1, cores // THREADS)) for _ in range(THREADS)]
        rates: dict[str, list[float]] = {"one_model_in_turns": [], "a_model_for_each_thread": []}
        for _ in range(3):  # in turns, since a machine's speed drifts
            rates["one_model_in_turns"].append(calls_per_second(shared, args.calls))
            rates["a_model_for_each_thread"].append(calls_per_second(apart, args.calls))
        found[interface] = {kind: round(sorted(values)[1], 1) for kind, values in rates.items()}
    print(json.dumps({"model": args.model.name, "cores": cores, "threads": THREADS, "calls_per_second": found}))


if __name__ == "__main__":
    main()
