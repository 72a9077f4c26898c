"""Run a training script unchanged, with or without Glowplug in front: train_start.py SCRIPT MODEL [--cache DIR] [...]

Without --cache it is stock Keras. Prints one line of JSON: the script's own marks on the system's monotonic clock, the
losses of its steps and, with a cache, what was restored and how long that took. --determinism turns on TensorFlow's
deterministic operations, on either side.
"""

import argparse
import contextlib
import io
import json
import runpy
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "src"))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("script")
    parser.add_argument("model")
    parser.add_argument("--cache")
    parser.add_argument("--determinism", action="store_true")
    args = parser.parse_args()
    document = {}
    spans: dict[str, int] = {}
    if args.cache:
        from glowplug import train

        train.enable(args.cache)
        time_restores(spans)
    if args.determinism:
        import tensorflow as tf

        tf.config.experimental.enable_op_determinism()
    sys.argv = [args.script, args.model]
    with contextlib.redirect_stdout(io.StringIO()):
        space = runpy.run_path(args.script, run_name="__main__")
    document |= {"marks_ns": dict(space["marks"]), "losses": space["losses"], "restore_spans_ns": spans}
    if args.cache:
        document["counts"] = train.counts()
    print(json.dumps(document))


def time_restores(spans: dict[str, int]) -> None:
    """Time the parts of a restored first step: building what it needs, restoring it, and running it once."""
    from glowplug.train.trace.cached import CachedFunction
    from glowplug.train.trace.restore import RestoredFunction
    from glowplug.train.trainer.step import ModelStep

    for owner, method, name in (
        (ModelStep, "build", "optimizer_build_ns"),
        (CachedFunction, "_from_store", "restore_ns"),
        (RestoredFunction, "__call__", "first_run_ns"),
    ):
        setattr(owner, method, timed(getattr(owner, method), spans, name))


def timed(stock, spans: dict[str, int], name: str):
    def run(*args):
        began = time.perf_counter_ns()
        try:
            return stock(*args)
        finally:
            spans.setdefault(name, time.perf_counter_ns() - began)  # the first step's

    return run


if __name__ == "__main__":
    main()
