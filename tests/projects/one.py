"""Builds, packs and tries one model of a catalogue, in the interpreter of the environment that has its project.

    python one.py CATALOGUE                          the names, one a line
    python one.py CATALOGUE NAME FOLDER [--call]     build and pack; with --call, keep a call to be repeated
    python one.py --together CATALOGUE               the same for each name and folder that are read, in this process
    python one.py --first stock|glowplug FOLDER      repeat the call: its answer, and how long it took from the start;
                                                     then some more for each line that is read, and how long one took
    python one.py --forks                            the same with stock for each folder that is read, in forks of this
                                                     process, which has imported TensorFlow; `end` ends one

A builder writes a SavedModel into the directory that it is given, or returns a live model. What is asked for is one
JSON document, on the last line.
"""

from __future__ import annotations

import importlib
import json
import os
import pickle
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

BEGAN = time.monotonic()
TURN_CALLS = 10
TURN_S = 0.3  # a turn of a model that takes long ends sooner
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
        manifest, reason, recording = (_pack_here if here else _pack)(source, bundle, libraries)
    except glowplug.GlowplugError as error:
        return {"outcome": "refused", "reason": str(error)}
    took = time.monotonic() - began
    if call:
        _keep_call(folder, source, libraries, recording)
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


def _pack(source: Path, bundle: Path, libraries: tuple[str, ...]) -> tuple[Any, str | None, Any]:
    import glowplug

    packed = glowplug.pack(source, bundle, op_libraries=libraries)
    return packed.manifest, packed.reason, None


def _pack_here(source: Path, bundle: Path, libraries: tuple[str, ...]) -> tuple[Any, str | None, Any]:
    """Do what the child of `glowplug.pack` does, in a process that has imported TensorFlow already."""
    from glowplug.bundle.reader import open_bundle
    from glowplug.convert.job import Job, Order

    bundle.mkdir()
    job = Job(Order(bundle, source, op_libraries=libraries), lambda stage: None)
    reason = job.run()
    return open_bundle(bundle).manifest, reason, job.recording


def together(catalogue: str, *, call: bool) -> None:
    for line in sys.stdin:
        name, folder = line.rstrip("\n").split("\t")
        print(ROW + json.dumps(pack(catalogue, name, Path(folder), call=call, here=True)), flush=True)


def _size(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def _keep_call(folder: Path, source: Path, libraries: tuple[str, ...], recording: Any) -> None:
    """Keep a call that the source answers, made up as `pack` makes them up."""
    from glowplug.convert.calls.recording import record
    from glowplug.convert.calls.typical import typical_request
    from glowplug.convert.source.saved_model import SavedModel
    from glowplug.runtime.oplibrary import load_op_library

    if recording is None:
        for library in libraries:
            load_op_library(library)
        with SavedModel(source) as opened:
            recording = record(opened, [])
    chosen = typical_request(recording, given=0)
    if chosen is not None:
        kept = (chosen.signature, dict(chosen.inputs), str(source), libraries)
        (folder / "call.pickle").write_bytes(pickle.dumps(kept))


def first(side: str, folder: Path, began: float = BEGAN) -> None:
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
        call = lambda: _arrays(function(**tensors))  # noqa: E731
    answer = call()
    answered = {"first_s": round(time.monotonic() - began, 3)}
    answers = folder / "answer.pickle"
    if side == "stock":
        answers.write_bytes(pickle.dumps(answer))
        rounded = {key: tf.constant(_rounded(value)) for key, value in inputs.items()}
        answered["rounding"] = _difference(answer, _arrays(function(**rounded)))
    elif answers.exists():
        answered["to_stock"] = _difference(pickle.loads(answers.read_bytes()), answer)
    print(ROW + json.dumps(answered), flush=True)
    while _read_line() not in ("", "end"):
        print(ROW + json.dumps(_turn(call)), flush=True)


def _rounded(value: Any) -> Any:
    """Return numbers that differ in the last digit: what that changes in an answer is beyond anybody."""
    import numpy as np

    array = np.asarray(value)
    return np.nextafter(array, np.array(np.inf, array.dtype)) if array.dtype.kind == "f" else value


def forks() -> None:
    """Serve one folder after the other. Whoever forks must not have run an operation, and has one thread."""
    import tensorflow  # noqa: F401

    while folder := _read_line():
        began = time.monotonic()
        child = os.fork()
        if not child:
            try:
                first("stock", Path(folder), began)
            except Exception as error:
                print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
                os._exit(1)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print(ROW + json.dumps({"ended": os.waitstatus_to_exitcode(status)}), flush=True)


def _read_line() -> str:
    """Read one line and not a byte more: the next one may be for another process."""
    line = b""
    while (byte := os.read(0, 1)) not in (b"", b"\n"):
        line += byte
    return line.decode()


def _arrays(answers: dict[str, Any]) -> dict[str, Any]:
    """Return what stock answers as arrays: the parts of a ragged or sparse tensor are `x`, `x_1` ..., as in `pack`."""
    import tensorflow as tf

    arrays = {}
    for key, answer in answers.items():
        for place, part in enumerate(tf.nest.flatten(answer, expand_composites=True)):
            arrays[f"{key}_{place}" if place else key] = part.numpy()
    return arrays


def _turn(call: Callable[[], Any]) -> float:
    """Return how long one call takes, in the middle of a few."""
    took: list[float] = []
    while len(took) < TURN_CALLS and sum(took) < TURN_S:
        began = time.monotonic()
        call()
        took.append(time.monotonic() - began)
    return statistics.median(took)


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
        first(arguments[1], Path(arguments[2]))
    elif arguments[0] == "--forks":
        forks()
    elif arguments[0] == "--together":
        together(arguments[1], call="--call" in sys.argv)
    elif len(arguments) == 1:
        print("\n".join(importlib.import_module(arguments[0]).MODELS), flush=True)
    else:
        row = pack(arguments[0], arguments[1], Path(arguments[2]), call="--call" in sys.argv)
        print(json.dumps(row), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
