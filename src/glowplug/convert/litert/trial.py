"""Tries a `litert` bundle on recorded calls. Runs in processes of its own, without TensorFlow: LiteRT may die on it.

Recordings travel in files beside the bundle that is being made; both are this user's alone.
"""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

from glowplug.bundle import layout, schema
from glowplug.bundle.reader import open_bundle
from glowplug.bundle.warmup import Request
from glowplug.convert.calls.edges import compare_edges
from glowplug.convert.calls.equivalence import RecordedCall, Recording, compare
from glowplug.convert.calls.samples import BATCHES, has_open_batch, make_inputs, styles, words
from glowplug.core.disk.digest import sha256_file
from glowplug.core.disk.files import write_file
from glowplug.core.errors import GlowplugError
from glowplug.core.manifest import PackedWeights, Signature
from glowplug.loader.engines import packed_weights
from glowplug.loader.engines.engine import Engine, Options
from glowplug.loader.engines.litert import LiteRTEngine
from glowplug.loader.engines.litert_interfaces import installed_release, pack_weights
from glowplug.loader.engines.tflite_file import TfliteFile

LEAST_MAGNITUDE = 1e12  # of floating-point inputs, up to which a model must answer as its source does


def store(recording: Recording, path: Path) -> None:
    """Write a recording for a trial. Why the source refused a call is no part of it."""
    calls = tuple(replace(call, failure=None) for call in recording.calls)
    path.write_bytes(pickle.dumps(replace(recording, calls=calls)))


def load(path: Path) -> Recording:
    """Read a recording back."""
    recording: Recording = pickle.loads(path.read_bytes())
    return recording


def prove(argument: dict[str, Any]) -> None:
    """Pack the weights of the bundle at `bundle` for this machine, repeat the recorded calls, and keep the record."""
    directory = Path(argument["bundle"])
    manifest = open_bundle(directory).manifest
    assert manifest.litert is not None
    settings = replace(manifest.litert, packed=_pack(directory) if manifest.litert.interface != "interpreter" else None)
    write_file(directory / layout.MANIFEST, schema.dump(replace(manifest, litert=settings)))
    engine = LiteRTEngine(open_bundle(directory), Options())
    edges = pickle.loads(Path(argument["edges"]).read_bytes()) if argument["edges"] else []
    try:
        record = compare(
            engine, load(Path(argument["recording"])), argument["tolerances"], refusals=argument["source_is_tensorflow"]
        )
        largest = compare_edges(engine, edges, argument["tolerances"], LEAST_MAGNITUDE)
        known = [one for one in (largest, argument["largest"]) if one is not None]
        settings = replace(settings, largest=min(known, default=None))
    finally:
        engine.close()
    proved = replace(manifest, litert=settings, equivalence={**record, **argument["remarks"]})
    write_file(directory / layout.MANIFEST, schema.dump(proved))


def _pack(directory: Path) -> PackedWeights:
    model, target = directory / layout.TFLITE, directory / layout.PACKED
    packed_weights.make_file(str(target), lambda path: pack_weights(str(model), path))
    target.chmod(model.stat().st_mode & 0o444)
    key = packed_weights.machine_key(sha256_file(model), installed_release())
    return PackedWeights(key, target.stat().st_size, sha256_file(target))


def record_file(argument: dict[str, Any]) -> None:
    """Record what a `.tflite` file answers in LiteRT's own interpreter, as its users have it today."""
    engine = TfliteFile(Path(argument["model"]))
    requests: list[Request] = pickle.loads(Path(argument["requests"]).read_bytes())
    calls: list[RecordedCall] = []
    unproven = []
    for name, signature in engine.signatures.items():
        mine = [_call(engine, one) for one in requests if one.signature == name] or _sampled(engine, name, signature)
        calls += mine
        if not any(call.answer is not None for call in mine):
            unproven.append(name)
    engine.close()
    store(Recording(tuple(calls), frozenset(), tuple(unproven)), Path(argument["recording"]))


def _sampled(engine: Engine, name: str, signature: Signature) -> list[RecordedCall]:
    """Call a signature with made-up inputs of the first style that it accepts.

    All calls are kept, in their order: a model may have state. None is without rows, since what LiteRT says to that
    depends on the calls before.
    """
    calls: list[RecordedCall] = []
    for style in styles(signature.inputs, (words,)):
        calls.append(_call(engine, Request(name, make_inputs(signature.inputs, style, 2, seed=0))))
        if calls[-1].answer is not None:
            batches = [batch for batch in BATCHES if batch] if has_open_batch(signature.inputs) else BATCHES[:2]
            made = [make_inputs(signature.inputs, style, batch, seed) for seed, batch in enumerate(batches)]
            return calls + [_call(engine, Request(name, inputs)) for inputs in made]
    return calls


def _call(engine: Engine, request: Request) -> RecordedCall:
    signature = engine.signatures[request.signature]
    try:
        results = engine.run(request.signature, [request.inputs[key] for key in signature.inputs])
    except GlowplugError:
        return RecordedCall(request, None)
    return RecordedCall(request, dict(zip(signature.outputs, results, strict=True)))
