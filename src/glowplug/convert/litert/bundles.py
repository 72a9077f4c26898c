"""Makes `litert` bundles: of a SavedModel through the converter, or of a `.tflite` file as it is, proven either way.

What LiteRT does with a model is only known when it is tried, so that everything here happens in processes of its own.
"""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from glowplug.bundle import layout
from glowplug.bundle.reader import open_bundle
from glowplug.bundle.tflite.model import DEFAULT_SIGNATURE, TfliteModel, check_tflite_file
from glowplug.bundle.warmup import Request
from glowplug.bundle.writer import BundleWriter
from glowplug.convert import isolated
from glowplug.convert.calls.equivalence import Recording
from glowplug.convert.contents import add_warmup, provenance
from glowplug.convert.job import Quantize
from glowplug.convert.source.sources import Located
from glowplug.core.errors import OutputMismatchError, UnsupportedModelError
from glowplug.core.manifest import Interface, LiteRTSettings, Manifest, Port, Signature
from glowplug.core.tolerances import TOLERANCES
from glowplug.loader.engines.litert import is_possible, smallest_shape
from glowplug.loader.engines.litert_interfaces import installed_release
from glowplug.loader.engines.tflite_file import open_tflite, signatures_of

from . import trial
from .operations import largest_known, refuse_unknown

if TYPE_CHECKING:
    from glowplug.convert.source.saved_model import SourceSignature

# Largest difference allowed, relative to the largest magnitude of an output, where the caller does not say.
DEFAULT_TOLERANCES: Mapping[Quantize, float] = {"dynamic": 0.05, "float16": 0.005, "int8": 0.1}

# LiteRT's kernels add in another order than TensorFlow's, and approximate functions otherwise: a BERT-sized encoder was
# seen to differ by 1.1e-5.
_TOLERANCES = {**TOLERANCES, "float32": 5e-5}

CONVERT_S = 900.0
TRY_S = 600.0
# Below this, packing the weights at each load takes less time than `CompiledModel` takes longer to import.
SMALL_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class Quantization:
    """Numbers made coarser on the caller's wish. `calibration` is a file of requests, needed for int8."""

    kind: Quantize
    tolerance: float
    calibration: Path | None = None


def convert(
    saved_model: Path,
    signatures: Mapping[str, SourceSignature],
    recording: Recording,
    target: Path,
    quantization: Quantization | None = None,
    *,
    known_only: bool = False,
    seconds: float = CONVERT_S,
) -> dict[str, Signature]:
    """Convert a SavedModel into the file `target`; return its signatures, under the source's own names.

    Signatures that compute the same, as `serve` and `serving_default` of Keras do, become one in the file. Beside it,
    unless numbers are made coarser, come the source's answers at the edges. With `known_only`, operations that may do
    something else than TensorFlow's are refused.
    """
    installed_release()
    same = _alike(signatures, recording)
    stored = target.with_name("recording")
    trial.store(recording, stored)
    argument = {
        "saved_model": str(saved_model),
        "recording": str(stored),
        "edges": None if quantization else str(_edges_of(target)),
        "target": str(target),
        "signatures": sorted(set(same.values())),
        "quantize": quantization.kind if quantization else None,
        "calibration": str(quantization.calibration) if quantization and quantization.calibration else None,
    }
    isolated.call(
        "glowplug.convert.litert.converter:convert",
        argument,
        stage="convert for LiteRT",
        seconds=seconds,
        library="TensorFlow's converter",
    )
    model = _check(target)
    if known_only:
        refuse_unknown(model)
    return {name: _joined(name, one, model.signatures.get(same[name])) for name, one in signatures.items()}


def write_proven(
    directory: Path,
    model: Path,
    signatures: Mapping[str, Signature],
    source: Located,
    recording: Recording,
    requests: Sequence[Request],
    quantization: Quantization | None = None,
    *,
    any_shape: bool = False,
    known_only: bool = False,
    releases: Mapping[str, str] | None = None,
    seconds: float = TRY_S,
) -> Manifest:
    """Write the bundle and prove it, with the first of LiteRT's interfaces that answers as the source does.

    With `known_only`, it is to refuse inputs beyond those that all of its operations are known to treat rightly.
    """
    origin = provenance(source, litert=installed_release(), **(releases or {}))
    stored, edges = directory.with_name("recording"), _edges_of(model)
    trial.store(recording, stored)
    found = _check(model)
    remarks = {"quantize": quantization.kind, "tolerance": quantization.tolerance} if quantization else {}
    tries = _interfaces(signatures, found, model.stat().st_size, recording, any_shape=any_shape)
    for interface in tries:
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
        with BundleWriter(directory) as writer:
            writer.add_file(layout.TFLITE, model)
            add_warmup(writer, requests, signatures)
            writer.finish(
                engine="litert",
                signatures=signatures,
                provenance=origin,
                litert=LiteRTSettings(interface, any_shape),
            )
        argument = {
            "bundle": str(directory),
            "recording": str(stored),
            # What a model with state answers there depends on the calls before.
            "edges": str(edges) if not any_shape and not quantization and not found.stateful else None,
            "source_is_tensorflow": not any_shape,
            "largest": largest_known(found) if known_only else None,
            "tolerances": dict.fromkeys(TOLERANCES, quantization.tolerance) if quantization else _TOLERANCES,
            "remarks": remarks,
        }
        try:
            isolated.call("glowplug.convert.litert.trial:prove", argument, stage="compare answers", seconds=seconds)
        except (OutputMismatchError, UnsupportedModelError):
            if interface == tries[-1]:
                raise
        else:
            break
    stored.unlink()
    return open_bundle(directory).manifest


def record_file(model: Path, requests: Sequence[Request], scratch: Path, *, seconds: float = TRY_S) -> Recording:
    """Record what a `.tflite` file answers."""
    given, stored = scratch / "requests", scratch / "recording"
    given.write_bytes(pickle.dumps(list(requests)))
    argument = {"model": str(model), "requests": str(given), "recording": str(stored)}
    isolated.call(
        "glowplug.convert.litert.trial:record_file", argument, stage="record the model's answers", seconds=seconds
    )
    recording = trial.load(stored)
    if not any(call.answer is not None for call in recording.calls):
        raise UnsupportedModelError(
            "no made-up input suits a signature, so its answers cannot be compared",
            seen=", ".join(recording.unproven),
            remedy="give a real request with --warmup",
        )
    return recording


def file_signatures(model: Path) -> Mapping[str, Signature]:
    """Return what can be called in a `.tflite` file; raise for one that must not be given to LiteRT."""
    return signatures_of(_check(model))


def _interfaces(
    signatures: Mapping[str, Signature], model: TfliteModel, size: int, recording: Recording, *, any_shape: bool
) -> list[Interface]:
    """Return the interfaces to try, the one that starts soonest first."""
    tries: list[Interface] = ["interpreter"]
    if size < SMALL_BYTES:
        return tries
    if is_possible("declared", model, signatures) and all(
        _is_called_as_declared(name, one, recording) for name, one in signatures.items()
    ):
        tries.insert(0, "declared")
    if is_possible("compiled", model, signatures) and not any_shape:
        tries.insert(0, "compiled")
    return tries


def _is_called_as_declared(name: str, signature: Signature, recording: Recording) -> bool:
    """Say whether a recorded call has the shapes that are in the file: what is not tried is not used."""
    shapes = {key: smallest_shape(port) for key, port in signature.inputs.items()}
    return any(
        call.request.signature == name
        and call.answer is not None
        and all(call.request.inputs[key].shape == shape for key, shape in shapes.items())
        for call in recording.calls
    )


def _edges_of(model: Path) -> Path:
    return model.with_name(f"{model.name}.edges")


def _check(model: Path) -> TfliteModel:
    with open_tflite(model) as file:
        return check_tflite_file(file)


def _alike(signatures: Mapping[str, SourceSignature], recording: Recording) -> dict[str, str]:
    """Return, for each signature, the first one that takes, computes and gives the same."""
    first: dict[object, str] = {}
    same = {}
    for name in sorted(signatures, key=lambda one: (one != DEFAULT_SIGNATURE, one)):
        one = signatures[name]
        specs = tuple(tuple((key, port.spec) for key, port in ports.items()) for ports in (one.inputs, one.outputs))
        computed = name if name in recording.random else recording.computations.get(name, name)
        same[name] = first.setdefault((computed, specs), name)
    return same


def _joined(name: str, source: SourceSignature, found: Signature | None) -> Signature:
    """Return a signature as the source declares it, with the file's tensors."""
    if found is None:
        raise _changed(name, "it is missing")
    return Signature(
        _joined_ports(name, source.inputs, found.inputs, narrowed=True),
        _joined_ports(name, source.outputs, found.outputs, narrowed=False),
        method=source.method,
    )


def _joined_ports(
    name: str, declared: Mapping[str, Port], found: Mapping[str, Port], *, narrowed: bool
) -> dict[str, Port]:
    ports = {}
    for key, port in declared.items():
        other = found.get(key)
        if other is None or other.spec.dtype != port.spec.dtype:
            raise _changed(name, f"{key} is {'missing' if other is None else other.spec.dtype}")
        spec = port.spec
        if narrowed:
            if spec.shape is None or len(spec.shape) != len(other.spec.shape or ()):
                raise _changed(name, f"{key} has no fixed number of dimensions")
            # What LiteRT took for a fixed size must not be resized.
            dims = zip(spec.shape, other.spec.shape or (), strict=True)
            spec = replace(spec, shape=tuple(ours if theirs is None else theirs for ours, theirs in dims))
        ports[key] = Port(spec, other.tensor)
    return ports


def _changed(name: str, seen: str) -> UnsupportedModelError:
    return UnsupportedModelError(
        f"LiteRT cannot take signature {name!r} as it is", seen=seen, remedy="pack it with --engine native"
    )
