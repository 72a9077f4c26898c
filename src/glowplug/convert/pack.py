"""`glowplug.pack`: a model in, a bundle out, with its answers proven equal to the source's.

The work is done by a child process. This one imports TensorFlow only for a live model, which it has to export.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from glowplug.bundle.layout import is_replaceable
from glowplug.bundle.reader import open_bundle
from glowplug.core.clock import now_ns
from glowplug.core.disk.files import new_directory, refuse_existing
from glowplug.core.errors import UntrustedBundleError, UsageError
from glowplug.core.manifest import Manifest
from glowplug.loader.engines.savedmodel import is_saved_model
from glowplug.loader.origin import is_url, local_copy, publish, refuse_published
from glowplug.runtime import amx

from .child import Child
from .choice import PREFERENCES, Prefer
from .crash import Crash
from .job import CHOICES, QUANTIZE, SCRATCH, Choice, Order, Progress, Quantize
from .source.sources import check_path, is_keras_file, is_tflite_file, locate

if TYPE_CHECKING:
    from glowplug.store.progress import Progress as TransferProgress

_TEMPORARY = ".temporary"  # beside the scratch folder, for what libraries write

_CURED = (
    "TensorFlow died of this model on this processor, which announces AMX and fails at it; packed with "
    f"{'='.join(amx.CURE)}: set that also where the model is loaded on such a processor"
)


@dataclass(frozen=True, slots=True)
class Packed:
    """What `pack` made. `path` is a URL where that was asked for, with the digest of what was stored there.

    `reason` says why `auto` did not choose the native engine, where it did not.
    """

    path: Path | str
    manifest: Manifest
    reason: str | None
    stages_ns: Mapping[str, int]
    notes: tuple[str, ...] = ()  # what whoever uses the bundle should know


def pack(
    model: Any,
    output: str | Path,
    *,
    engine: Choice = "auto",
    warmup: str | Path | None = None,
    signatures: Mapping[str, Any] | None = None,
    op_libraries: Sequence[str] = (),
    keep_variables: bool = False,
    tags: str | Sequence[str] | None = None,
    unsafe_lambda: bool = False,
    quantize: Quantize | None = None,
    calibration: str | Path | None = None,
    tolerance: float | None = None,
    prefer: Prefer = "start",
    force: bool = False,
    progress: Progress | None = None,
    transfer: TransferProgress | None = None,
    trusted_keys: Sequence[str | Path] = (),
    require_signature: bool = False,
    trust: bool = False,
    sign: str | Path | None = None,
) -> Packed:
    """Pack a SavedModel directory, a `.keras`, `.h5` or `.tflite` file, a Keras model or a `tf.Module` into a bundle.

    `warmup` is an `.npz`, `.json` or `tf_serving_warmup_requests` file; `signatures` are those of a `tf.Module`;
    `op_libraries` names installed packages of custom operations. With `keep_variables` the bundle also has the values
    of variables that packing folds into others, so that `train.load_weights` finds them all. `tags` choose among the
    graphs of a SavedModel. `unsafe_lambda` lets the Python code of a Keras file's Lambda layers run. `quantize` makes
    the numbers of a `litert` bundle coarser: `dynamic`, `float16`, or `int8`, which needs a `calibration` file of
    requests; the largest difference to the source's answers is measured, kept, and refused beyond `tolerance`.
    `prefer` says what `auto` chooses by: the measured `start`, `steady` calls or `memory` of the candidates, or `any`,
    the first one that answers as the source does. Nothing is left at `output` when packing fails. Both `model` and
    `output` may be URLs: `transfer` is told how far their bytes are, `trusted_keys` and `require_signature` say whose
    model is taken, and `sign` names the private key that signs what is stored. Packing runs a SavedModel, so one from
    a URL needs a signature, or `trust`.
    """
    if is_url(model) or is_url(output):
        options: dict[str, Any] = {
            "engine": engine,
            "warmup": warmup,
            "signatures": signatures,
            "op_libraries": op_libraries,
            "keep_variables": keep_variables,
            "tags": tags,
            "unsafe_lambda": unsafe_lambda,
            "quantize": quantize,
            "calibration": calibration,
            "tolerance": tolerance,
            "prefer": prefer,
            "progress": progress,
        }
        if is_url(model):
            from glowplug.store.signature import trust as whom_to_trust

            trusted = whom_to_trust(trusted_keys, required=require_signature)
            with local_copy(model, progress=transfer, trusted=trusted) as copy:
                if is_saved_model(copy.path) and not (trust or copy.signed):
                    raise UntrustedBundleError(
                        "packing runs a SavedModel, and no trusted key has signed this one from a URL",
                        seen=model,
                        remedy="pass trust=True (--trust) if you trust where it came from, or push it with --sign",
                    )
                return pack(copy.path, output, force=force, transfer=transfer, sign=sign, **options)
        return _pack_to_url(model, str(output), options, force=force, transfer=transfer, sign=sign)
    if engine not in CHOICES:
        raise UsageError("there is no such engine", seen=engine, remedy=f"use one of {', '.join(CHOICES)}")
    if prefer not in PREFERENCES:
        raise UsageError("there is no such preference", seen=prefer, remedy=f"use one of {', '.join(PREFERENCES)}")
    _check_quantization(engine, quantize, calibration, tolerance)
    if engine == "litert" and keep_variables:
        raise UsageError(
            "a litert bundle has no place for variables", seen="keep_variables", remedy="pack it with --engine native"
        )
    if isinstance(model, str | Path):
        check_path(Path(model))
        if is_tflite_file(Path(model)) and (engine not in ("auto", "litert") or quantize is not None):
            raise UsageError(
                "a .tflite file is for LiteRT, as it is",
                seen=quantize or engine,
                remedy="leave --engine and --quantize out, or pack what it was made from",
            )
    target = Path(output)
    refuse_existing(target, force=force, replaceable=is_replaceable)
    if isinstance(model, str | Path):
        _refuse_source(Path(model), target)
    stages = _Stages(progress)
    with (
        contextlib.ExitStack() as children,
        new_directory(target, force=force, replaceable=is_replaceable) as directory,
    ):
        order = Order(
            directory,
            Path(model).absolute() if isinstance(model, str | Path) else None,
            engine=engine,
            warmup=Path(warmup).absolute() if warmup else None,
            op_libraries=tuple(op_libraries),
            keep_variables=keep_variables,
            tags=(tags,) if isinstance(tags, str) else tags if tags is None else tuple(tags),
            unsafe_lambda=unsafe_lambda,
            quantize=quantize,
            calibration=Path(calibration).absolute() if calibration else None,
            tolerance=tolerance,
            prefer=prefer,
        )
        try:
            reason, notes = _run(order, model, signatures, children, stages)
            manifest = open_bundle(directory).manifest
        except BaseException:
            children.close()  # before the directory goes that they write into
            raise
    stages.leave()
    return Packed(target, manifest, reason, stages.durations_ns, notes)


def _refuse_source(model: Path, target: Path) -> None:
    """Refuse an output in whose place the model is, or that has the model in it. A link alone may be replaced."""
    source, place = model.resolve(), target.parent.resolve() / target.name
    if source.is_relative_to(place) and not place.is_symlink():
        raise UsageError("the output would replace the model that is packed", seen=target, remedy="name another place")


def _check_quantization(
    engine: Choice, quantize: str | None, calibration: str | Path | None, tolerance: float | None
) -> None:
    """Refuse wishes that contradict each other, before anything is read."""
    if quantize is None:
        if calibration is not None or tolerance is not None:
            seen = "calibration" if calibration is not None else "tolerance"
            raise UsageError("this is for a quantised model only", seen=seen, remedy="say how with --quantize")
        return
    if quantize not in QUANTIZE:
        raise UsageError("there is no such quantisation", seen=quantize, remedy=f"use one of {', '.join(QUANTIZE)}")
    if engine != "litert":
        raise UsageError("only the litert engine runs quantised models", seen=engine, remedy="add --engine litert")
    if tolerance is not None and not 0 < tolerance < math.inf:
        raise UsageError(
            "a tolerance is a number above zero", seen=tolerance, remedy="0.05 allows 5 % of the largest value"
        )
    if quantize == "int8" and calibration is None:
        raise UsageError("int8 needs a calibration file", remedy="give requests like real ones with --calibration")
    if quantize != "int8" and calibration is not None:
        raise UsageError("only int8 takes a calibration file", seen=quantize, remedy="leave --calibration out")
    if calibration is not None and not Path(calibration).is_file():
        raise UsageError("there is no such calibration file", seen=calibration, remedy="check the path")


def _pack_to_url(
    model: Any,
    url: str,
    options: Mapping[str, Any],
    *,
    force: bool,
    transfer: TransferProgress | None,
    sign: str | Path | None,
) -> Packed:
    """Pack into a directory that is not kept, and store that."""
    import tempfile

    refuse_published(url, force=force)
    key = None
    if sign is not None:
        from glowplug.store.signature import read_private

        key = read_private(Path(sign))
    with tempfile.TemporaryDirectory(prefix="glowplug-pack-") as scratch:
        directory = Path(scratch, "bundle")
        packed = pack(model, directory, **options)
        pushed = publish(directory, url, key=key, progress=transfer)
    return replace(packed, path=f"{url}@{pushed.digest}")


def _run(
    order: Order, model: Any, signatures: Mapping[str, Any] | None, children: contextlib.ExitStack, stages: _Stages
) -> tuple[str | None, tuple[str, ...]]:
    """Have a child do it. If TensorFlow dies of a processor's lie, another one is told; if it dies while it converts,
    another one packs the model as it is. Returns why the bundle is not native, and notes.
    """
    needs_tensorflow = order.model is None or not is_tflite_file(order.model)
    # TensorFlow leaves files behind where a process is ended: generated code, for instance.
    temporary = order.directory / _TEMPORARY
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary.absolute())}

    def start() -> Child:
        child = Child(order.directory, environment, tensorflow=needs_tensorflow)
        return children.enter_context(contextlib.closing(child))

    child = start()
    if order.model is None or (is_keras_file(order.model) and "keras" in sys.modules):
        # A live model is in this process alone, and so may be the custom classes of a Keras file.
        stages.enter("read the model")
        scratch = order.directory / SCRATCH
        scratch.mkdir()
        order = replace(order, located=locate(model, scratch, signatures, unsafe_lambda=order.unsafe_lambda))
    reason: str | None = None
    notes: tuple[str, ...] = ()
    while True:
        try:
            why = child.run(order, stages.enter)
            shutil.rmtree(temporary, ignore_errors=True)
            return reason or why, notes
        except Crash as crash:  # each of the two ways out is there once
            if crash.is_illegal_instruction and amx.needs_cure(environment):
                environment.update([amx.CURE])
                notes = (_CURED,)
            elif order.engine == "auto" and needs_tensorflow:
                reason = str(crash.as_error())
                order = replace(order, engine="savedmodel")
            else:
                raise crash.as_error() from crash
        child = start()


class _Stages:
    """Times the stages of a run and passes their names on."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress or (lambda stage: None)
        self._stage: tuple[str, int] | None = None
        self.durations_ns: dict[str, int] = {}

    def enter(self, stage: str) -> None:
        self.leave()
        self._stage = (stage, now_ns())
        self._progress(stage)

    def leave(self) -> None:
        if self._stage is not None:
            name, began = self._stage
            self.durations_ns[name] = self.durations_ns.get(name, 0) + now_ns() - began
            self._stage = None
