"""Builds, packs and tries one model of a catalogue, in the interpreter of the environment that has its project.

    python one.py CATALOGUE                          the names, one a line
    python one.py CATALOGUE NAME FOLDER [--call]     build and pack; with --call, keep a call to be repeated
    python one.py --together CATALOGUE               the same for each name that is read, in this process: sooner
    python one.py --first stock|glowplug FOLDER      repeat the call: its answer, and how long it took from the start

A builder writes a SavedModel into the directory that it is given, or returns a live model. What is asked for is one
JSON document, on the last line.
"""

from __future__ import annotations

import importlib
import json
import os
import pickle
import sys
import time
from pathlib import Path
from typing import Any

BEGAN = time.monotonic()
STEADY_CALLS = 20
ROW = "row: "  # projects print, too


def pack(catalogue: str, name: str, folder: Path, *, call: bool = False, here: bool = False) -> dict[str, Any]:
    module = importlib.import_module(catalogue)
    source, bundle = folder / "source", folder / "bundle"
    try:
        made = module.MODELS[name](source)
    except Exception as error:  # of the other project: not our answer
        text = " ".join(str(error).split()).replace(str(Path(__file__).parents[2]), "")
        return {"outcome": "not built", "reason": f"{type(error).__name__}: {text[:200]}"}

    import glowplug
    from glowplug.convert.source.sources import locate

    libraries = tuple(getattr(module, "OP_LIBRARIES", {}).get(name, ()))
    began = time.monotonic()
    try:
        if made is not None:  # as `pack` does; here the SavedModel stays, for stock TensorFlow
            source.mkdir()
            source = locate(made, source).directory
        manifest, reason = (_pack_here if here else _pack)(source, bundle, libraries)
    except glowplug.GlowplugError as error:
        return {"outcome": "refused", "reason": str(error)}
    took = time.monotonic() - began
    if call:
        _keep_call(folder, source, libraries)
    equivalence = manifest.equivalence
    return {
        "outcome": manifest.engine,
        "reason": reason,
        "compared": equivalence["calls"],
        "unproven": equivalence.get("unproven", []),
        "max_rel": max((one["max_rel"] for one in equivalence["dtypes"].values()), default=0.0),
        "random": equivalence["random"],
        "pack_s": round(took, 2),
        "source_bytes": _size(source),
        "bundle_bytes": _size(bundle),
    }


def _pack(source: Path, bundle: Path, libraries: tuple[str, ...]) -> tuple[Any, str | None]:
    import glowplug

    packed = glowplug.pack(source, bundle, op_libraries=libraries)
    return packed.manifest, packed.reason


def _pack_here(source: Path, bundle: Path, libraries: tuple[str, ...]) -> tuple[Any, str | None]:
    """Do what the child of `glowplug.pack` does, in a process that has imported TensorFlow already."""
    from glowplug.bundle.reader import open_bundle
    from glowplug.convert.job import Job, Order

    bundle.mkdir()
    reason = Job(Order(bundle, source, op_libraries=libraries), lambda stage: None).run()
    return open_bundle(bundle).manifest, reason


def together(catalogue: str) -> None:
    import tempfile

    for line in sys.stdin:
        with tempfile.TemporaryDirectory(prefix="glowplug-models-") as folder:
            print(ROW + json.dumps(pack(catalogue, line.rstrip("\n"), Path(folder), here=True)), flush=True)


def _size(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def _keep_call(folder: Path, source: Path, libraries: tuple[str, ...]) -> None:
    """Find a call that the source answers, made up as `pack` makes them up."""
    from glowplug.convert.calls.equivalence import record
    from glowplug.convert.source.saved_model import SavedModel
    from glowplug.runtime.oplibrary import load_op_library

    for library in libraries:
        load_op_library(library)
    with SavedModel(source) as opened:
        answered = [one for one in record(opened, []).calls if one.answer is not None]
    if answered:
        chosen = answered[-2] if len(answered) > 1 else answered[-1]  # the last one has a batch of zero
        kept = (chosen.request.signature, dict(chosen.request.inputs), str(source), libraries)
        (folder / "call.pickle").write_bytes(pickle.dumps(kept))


def first(side: str, folder: Path) -> dict[str, Any]:
    signature, inputs, source, libraries = pickle.loads((folder / "call.pickle").read_bytes())
    if side == "glowplug":
        import glowplug

        model = glowplug.load(folder / "bundle", trust=True, op_libraries=libraries).signature(signature)
        call = lambda: model(inputs)  # noqa: E731
    else:
        import tensorflow as tf

        for library in libraries:
            importlib.import_module(library)
        loaded = tf.saved_model.load(source)
        function = loaded.signatures[signature]
        tensors = {key: tf.constant(value) for key, value in inputs.items()}
        call = lambda: {key: value.numpy() for key, value in function(**tensors).items()}  # noqa: E731
    answer = call()
    answered = time.monotonic() - BEGAN
    began = time.monotonic()
    for _ in range(STEADY_CALLS):
        call()
    steady = (time.monotonic() - began) / STEADY_CALLS
    times = {"first_s": round(answered, 3), "steady_s": steady}
    answers = folder / "answer.pickle"
    if side == "stock":
        answers.write_bytes(pickle.dumps(answer))
        return times
    return {**times, "to_stock": _difference(pickle.loads(answers.read_bytes()), answer)} if answers.exists() else times


def _difference(stock: dict[str, Any], ours: Any) -> float:
    """Return how far two answers are apart, in parts of the largest value; infinity where they cannot be compared."""
    import numpy as np

    apart = 0.0
    for key, expected in stock.items():
        seen = ours[key] if isinstance(ours, dict) else ours
        if expected.shape != seen.shape or expected.dtype != seen.dtype:
            return float("inf")
        if not expected.size or np.array_equal(expected, seen):
            continue
        if expected.dtype.kind not in "fcV":  # V: bfloat16
            return float("inf")
        first, second = expected.astype(np.complex128), seen.astype(np.complex128)
        difference = np.where(np.isfinite(first), np.abs(first - second), 0.0)
        apart = max(apart, float(np.max(difference) / max(np.nanmax(np.abs(first)), 1e-30)))
    return apart


def main() -> None:
    sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    arguments = [one for one in sys.argv[1:] if one != "--call"]
    if arguments[0] == "--first":
        print(json.dumps(first(arguments[1], Path(arguments[2]))), flush=True)
    elif arguments[0] == "--together":
        together(arguments[1])
    elif len(arguments) == 1:
        print("\n".join(importlib.import_module(arguments[0]).MODELS), flush=True)
    else:
        row = pack(arguments[0], arguments[1], Path(arguments[2]), call="--call" in sys.argv)
        print(json.dumps(row), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
