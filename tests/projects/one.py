"""Builds, packs and tries one model of a catalogue, in the interpreter of the environment that has its project.

    python one.py CATALOGUE                          the names, one a line
    python one.py CATALOGUE NAME FOLDER              build and pack; one JSON document on the last line
    python one.py --first stock|glowplug FOLDER      time from the start of this process to the first answer

A builder writes a SavedModel into the directory that it is given, or returns a live model.
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


def pack(catalogue: str, name: str, folder: Path) -> dict[str, Any]:
    models = importlib.import_module(catalogue).MODELS
    source, bundle = folder / "source", folder / "bundle"
    try:
        made = models[name](source)
    except Exception as error:  # of the other project: not our answer
        return {"outcome": "not built", "reason": f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"}

    from glowplug.bundle.reader import open_bundle
    from glowplug.convert.job import Job, Order
    from glowplug.convert.source.sources import locate
    from glowplug.core.errors import GlowplugError

    began = time.monotonic()
    bundle.mkdir()
    (bundle / ".scratch").mkdir()
    libraries = tuple(getattr(importlib.import_module(catalogue), "OP_LIBRARIES", {}).get(name, ()))
    try:
        located = locate(source if made is None else made, bundle / ".scratch")
        source = located.directory
        size = sum(path.stat().st_size for path in source.rglob("*") if path.is_file())
        job = Job(Order(bundle, None, located, op_libraries=libraries), lambda stage: None)
        reason = job.run()
    except GlowplugError as error:
        return {"outcome": "refused", "reason": str(error)}
    manifest = open_bundle(bundle).manifest
    assert job._recording is not None
    answered = [call for call in job._recording.calls if call.answer is not None]
    row = {
        "outcome": manifest.engine,
        "reason": reason,
        "compared": manifest.equivalence["calls"],
        "unproven": manifest.equivalence.get("unproven", []),
        "max_rel": max((one["max_rel"] for one in manifest.equivalence["dtypes"].values()), default=0.0),
        "pack_s": round(time.monotonic() - began, 2),
        "source_bytes": size,
        "bundle_bytes": sum(path.stat().st_size for path in bundle.rglob("*") if path.is_file()),
    }
    if answered:
        call = answered[-2] if len(answered) > 1 else answered[-1]  # the last one has a batch of zero
        wanted = (call.request.signature, dict(call.request.inputs), str(source), libraries)
        (folder / "call.pickle").write_bytes(pickle.dumps(wanted))
        if str(source).startswith(str(bundle)):  # exported into the scratch folder, which is gone
            row["source"] = None
    return row


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
        call = lambda: [value.numpy() for value in function(**tensors).values() if hasattr(value, "numpy")]  # noqa: E731
    call()
    answered = time.monotonic() - BEGAN
    began = time.monotonic()
    for _ in range(STEADY_CALLS):
        call()
    return {"first_s": round(answered, 3), "steady_s": (time.monotonic() - began) / STEADY_CALLS}


def main() -> None:
    sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    arguments = sys.argv[1:]
    if arguments[0] == "--first":
        print(json.dumps(first(arguments[1], Path(arguments[2]))), flush=True)
    elif len(arguments) == 1:
        print("\n".join(importlib.import_module(arguments[0]).MODELS), flush=True)
    else:
        print(json.dumps(pack(arguments[0], arguments[1], Path(arguments[2]))), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
