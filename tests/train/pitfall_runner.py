"""Runs cases of `pitfalls` in children forked from one warm process, as a standby does, and prints what each came to.

    python -m tests.train.pitfall_runner FOLDER CASE ...

A case that has two variants runs with one cache: variant 0, variant 1, and variant 0 again where the first run has
stored anything. Each prints a line of JSON: the name, for every run its result and its counts, and what stock gives
where the second variant was restored. TensorFlow is imported before the first fork; the parent runs no operation.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

_TIME_LIMIT_S = 120
ORDERS = {"DIFFERENT": (0, 1, 0), "UNSTABLE": (0, 0), "SAME": (0, 0)}


def run_in_child(
    kind: str, name: str, variant: int, folder: Path, number: int, *, stock: bool = False
) -> dict[str, Any]:
    """Fork, run one variant in the child, and return what it wrote."""
    told = folder / f"told-{number}.json"
    child = os.fork()
    if not child:
        status = 1
        try:
            told.write_text(json.dumps(_run(kind, name, variant, folder, stock=stock)))
            status = 0
        except BaseException:
            import traceback

            told.write_text(json.dumps({"error": traceback.format_exc()[-3000:]}))
        finally:
            os._exit(status)
    end = time.monotonic() + _TIME_LIMIT_S
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > end:
            os.kill(child, 9)
            os.waitpid(child, 0)
            return {"error": f"still running after {_TIME_LIMIT_S} s"}
        time.sleep(0.01)
    return json.loads(told.read_text()) if told.exists() else {"error": "the child died"}


def _run(kind: str, name: str, variant: int, folder: Path, *, stock: bool) -> dict[str, Any]:
    """In the child."""
    from glowplug import train
    from tests.train import pitfalls

    said: list[str] = []
    if not stock:
        import logging

        class Listen(logging.Handler):
            def emit(self, record: Any) -> None:
                said.append(record.getMessage())

        logging.getLogger("glowplug").addHandler(Listen())
        train.enable(folder / "cache")
    pitfalls.FOLDER[:] = [folder]
    case = getattr(pitfalls, kind)[name]
    result = case(variant) if kind == "DIFFERENT" else case()
    return {"result": json.loads(json.dumps(result)), "counts": train.counts(), "said": said}


def _warm() -> None:
    """Import what every child would import, and look through the stock packages once."""
    for module in (
        "glowplug.train.switch",
        "glowplug.train.trace.cached",
        "numpy.random",
        "tensorflow.python.data.ops.flat_map_op",
        "tensorflow.python.data.ops.from_tensors_op",
        "tensorflow.python.data.ops.range_op",
        "tensorflow.python.data.ops.zip_op",
    ):
        import_module(module)
    from glowplug.train import switch

    switch.prepare()
    gc.freeze()  # what is there stays; looking at it would copy its pages in every child


def main() -> None:
    folder, *names = sys.argv[1:]
    told = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # programs print, too
    from tests.train import (  # noqa: F401 - they add cases
        pitfalls,
        pitfalls_closed,
        pitfalls_looked_up,
        pitfalls_objects,
        pitfalls_python,
        pitfalls_reach,
        pitfalls_state,
        pitfalls_stock,
        pitfalls_surroundings,
        pitfalls_unseen,
    )

    _warm()

    for name in names:
        kind = next(kind for kind in ORDERS if name in getattr(pitfalls, kind))
        place = Path(folder) / name
        place.mkdir()
        runs, stock = [], None
        for number, variant in enumerate(ORDERS[kind]):
            if number < 2 or runs[0].get("counts", {}).get("stored"):
                runs.append(run_in_child(kind, name, variant, place, number))
        if kind == "DIFFERENT" and runs[1].get("counts", {}).get("restored"):
            stock = run_in_child(kind, name, 1, place, 9, stock=True)  # what it should have been
        print(json.dumps({"name": name, "kind": kind, "runs": runs, "stock": stock}), file=told, flush=True)


if __name__ == "__main__":
    main()
