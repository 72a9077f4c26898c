"""Steady calls: the SavedModel's signature against the Glowplug model, in alternating blocks inside one process.

    steady.py [MODEL ...] [--blocks 21] [--seconds 0.4]

A block is as many calls as fit into --seconds; both sides have the same number. Each pair of neighbouring blocks gives
one ratio of the medians, Glowplug's over stock's. The result is the median ratio and its 90 % bootstrap interval:
"slower" means that the whole interval is above 1, "faster" that it is below. Each model has a process of its own.

Models are those of bench/models.py and, as zoo:NAME, those of tests/zoo.py; `zoo` stands for all of these,
and alone writes a result of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import bundles
import machine
import models

ZOO = "zoo:"
_RESAMPLES = 10_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--blocks", type=int, default=21, help="pairs of blocks, at least 15 (default 21)")
    parser.add_argument("--seconds", type=float, default=0.4, help="length of a block (default 0.4)")
    parser.add_argument("--one", metavar="MODEL", help=argparse.SUPPRESS)  # the child: measure one model
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measure(args.one, args.blocks, args.seconds)))
        return
    machine.prepare()
    results = {}
    for name in expand(args.models or list(models.INPUTS)):
        options = ["--blocks", str(args.blocks), "--seconds", str(args.seconds)]
        one = results[name] = json.loads(machine.run_quietly([__file__, "--one", name, *options]))
        if "skipped" in one:
            print(f"{name:<28} {one['skipped']}", flush=True)
            continue
        low, high = one["interval_90"]
        stock, fast = (one["median_ns"][side] / 1e6 for side in ("stock", "glowplug"))
        spread = f"ratio {one['ratio']:.3f} [{low:.3f}, {high:.3f}]"
        print(f"{name:<28} {stock:9.3f} ms {fast:9.3f} ms  {spread} {one['verdict']}", flush=True)
    document = {"machine": machine.describe(), "blocks": args.blocks, "models": results}
    if args.models == ["zoo"]:
        machine.write_result("steady_zoo", document, partial=False)
    else:
        machine.write_result("steady", document, partial=bool(args.models))


def expand(names: list[str]) -> list[str]:
    if "zoo" not in names:
        return names
    zoo = load_zoo()
    return [name for name in names if name != "zoo"] + [f"{ZOO}{name}" for name in (*zoo.BUILDERS, *zoo.APPLICATIONS)]


def load_zoo() -> Any:
    sys.path.insert(0, str(machine.ROOT))
    from tests import zoo

    return zoo


def paths(name: str) -> tuple[Path, Path]:
    """Return the SavedModel and the bundle of a model."""
    if not name.startswith(ZOO):
        return models.saved_model(name), bundles.bundle(name)
    import glowplug

    zoo, plain = load_zoo(), name.removeprefix(ZOO)
    source = models.CACHE / f"{plain}_zoo"
    if not source.exists():
        source.parent.mkdir(parents=True, exist_ok=True)
        unfinished = source.with_name(f".{source.name}_{os.getpid()}")
        if plain in zoo.APPLICATIONS:
            zoo.build_application(plain, unfinished)
        else:
            zoo.BUILDERS[plain](unfinished)
        unfinished.rename(source)
    target = bundles.directory() / f"{plain}_zoo.glow"
    if not target.exists():
        glowplug.pack(source, target)
    return source, target


def measure(name: str, blocks: int, seconds: float) -> dict[str, Any]:
    """Run in the child: return the blocks' medians, the ratio and its interval."""
    import numpy as np
    import tensorflow as tf

    import glowplug

    source, packed = paths(name)
    try:
        root = tf.saved_model.load(str(source))
    except tf.errors.InvalidArgumentError:  # variables by reference, which only TF1's loader takes
        return {"skipped": "stock tf.saved_model.load refuses it"}
    model = glowplug.load(packed)
    key = "serving_default" if "serving_default" in model.signatures else next(iter(model.signatures))
    stock_call, fast_call = root.signatures[key], model.signature(key)
    inputs = make_inputs(name, fast_call)
    if inputs is None:
        return {"skipped": "accepts no made-up input"}

    def stock() -> None:
        for output in stock_call(**{port: tf.constant(value) for port, value in inputs.items()}).values():
            output.numpy()

    def fast() -> None:
        fast_call(inputs)

    for call in (stock, fast) * 3:
        call()
    calls = max(3, int(seconds / max(timed(stock), timed(fast), 1e-6)))
    pairs = []
    for number in range(blocks):
        order = (stock, fast) if number % 2 == 0 else (fast, stock)
        medians = {call: float(np.median([timed(call) for _ in range(calls)])) for call in order}
        pairs.append((medians[stock], medians[fast]))
    return {"calls_a_block": calls, **statistics(pairs)}


def statistics(pairs: list[tuple[float, float]]) -> dict[str, Any]:
    import numpy as np

    stock, fast = np.array(pairs).T
    ratios = fast / stock
    picks = np.random.default_rng(0).integers(0, len(ratios), (_RESAMPLES, len(ratios)))
    low, high = np.quantile(np.median(ratios[picks], axis=1), (0.05, 0.95))
    verdict = "slower" if low > 1 else "faster" if high < 1 else "the same"
    return {
        "median_ns": {"stock": int(np.median(stock) * 1e9), "glowplug": int(np.median(fast) * 1e9)},
        "ratio": round(float(np.median(ratios)), 4),
        "interval_90": [round(float(low), 4), round(float(high), 4)],
        "verdict": verdict,
        "blocks_ns": [[int(one * 1e9) for one in pair] for pair in pairs],
    }


def timed(call: Any) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def make_inputs(name: str, call: Any) -> dict[str, Any] | None:
    """Return inputs that the model accepts: ones for the reference models, else the first that `pack` would try."""
    import numpy as np

    ports = call.signature.inputs
    if name in models.INPUTS:
        shape, dtype = models.INPUTS[name]
        return {port: np.ones(shape, dtype) for port in ports}
    import glowplug
    from glowplug.convert.calls.samples import make_inputs as made_up
    from glowplug.convert.calls.samples import styles, words

    for style in styles(ports, (words,)):
        inputs = made_up(ports, style, batch=1, seed=0)
        try:
            call(inputs)
        except glowplug.GlowplugError:
            continue
        return inputs
    return None


if __name__ == "__main__":
    main()
