"""One run of `pack` on a SavedModel or a Keras file: convert, record, write, compare. TensorFlow is imported here.

It runs in a process of its own (`child`), because TensorFlow can die on a model, and because functions and operations
that the caller's process has registered must not make a bundle look as if it could answer alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from glowplug.bundle import layout, schema
from glowplug.bundle.reader import open_bundle
from glowplug.bundle.seal import seal
from glowplug.bundle.warmup import Request
from glowplug.core.disk.files import write_file
from glowplug.core.errors import OutputMismatchError, StorageError, UnsupportedModelError
from glowplug.core.manifest import Engine, Manifest
from glowplug.core.notices import held_back
from glowplug.loader.engines.engine import Options
from glowplug.runtime.library import ERROR, set_log_level

from .choice import Prefer
from .source.sources import SAVED_MODEL, Located, is_tflite_file, locate
from .source.tags import chosen_tags, retagged

if TYPE_CHECKING:
    from .calls.equivalence import Recording
    from .litert.bundles import Quantization
    from .source.saved_model import SavedModel

Choice = Literal["auto", "native", "litert", "savedmodel"]
Progress = Callable[[str], None]
CHOICES: tuple[Choice, ...] = ("auto", "native", "litert", "savedmodel")
Quantize = Literal["dynamic", "float16", "int8"]
QUANTIZE: tuple[Quantize, ...] = ("dynamic", "float16", "int8")
SCRATCH = ".scratch"


@dataclass(frozen=True, slots=True)
class Order:
    """What to pack, and into which directory: it becomes the bundle. `located` is set for what the caller exported."""

    directory: Path
    model: Path | None
    located: Located | None = None
    engine: Choice = "auto"
    warmup: Path | None = None
    op_libraries: tuple[str, ...] = ()
    keep_variables: bool = False
    tags: tuple[str, ...] | None = None
    unsafe_lambda: bool = False
    quantize: Quantize | None = None
    calibration: Path | None = None
    tolerance: float | None = None
    prefer: Prefer = "any"


def import_tensorflow() -> None:
    """Import TensorFlow without its notices. Inputs that a model refuses are no news: its log is kept to errors."""
    set_log_level(ERROR)
    with held_back():
        import tensorflow  # noqa: F401


class Job:
    """One run, in a directory that becomes the bundle at the end."""

    def __init__(self, order: Order, progress: Progress) -> None:
        self._order = order
        self._scratch = order.directory / SCRATCH
        self.enter = progress
        self._requests: list[Request] = []
        self.recording: Recording | None = None
        self._confirmed = False  # whether every call of it was made twice

    def run(self) -> str | None:
        """Build the bundle, and say why it is not native where `auto` did not choose that."""
        if self._order.model is not None and is_tflite_file(self._order.model):
            self._scratch.mkdir()
            self._tflite(self._order.model)
            self._finish("litert")
            return None
        import_tensorflow()
        from glowplug.runtime.oplibrary import load_op_library

        if self._order.located is None:
            shutil.rmtree(self._scratch, ignore_errors=True)
            self._scratch.mkdir()
        for name in self._order.op_libraries:
            load_op_library(name)
        if self._order.located is not None:
            self._source = self._order.located
        else:
            self.enter("read the model")
            self._source = locate(self._order.model, self._scratch, unsafe_lambda=self._order.unsafe_lambda)
        if self._source.kind == SAVED_MODEL:
            tags = chosen_tags(self._source.directory, self._order.tags)
            directory = retagged(self._source.directory, tags, self._scratch / "chosen")
            self._source = replace(self._source, directory=directory)
        engine, reason = self._choose()
        self._finish(engine)
        return reason

    def _finish(self, engine: Engine) -> None:
        """Turn the candidate of an engine into the bundle."""
        self.enter("finish")
        for entry in self.attempt(engine).iterdir():
            entry.rename(self._order.directory / entry.name)
        if engine == "savedmodel":  # the others need no trust
            with contextlib.suppress(OSError, StorageError):  # unsealed, it loads with trust=True
                seal(self._order.directory)
        shutil.rmtree(self._scratch)

    def _choose(self) -> tuple[Engine, str | None]:
        if self._order.engine != "auto":
            self.candidate(self._order.engine)
            return self._order.engine, None
        from .auto import choose

        chosen = choose(self, self._order, self._scratch)
        if chosen.measured:
            attempt = self.attempt(chosen.engine)
            manifest = replace(open_bundle(attempt).manifest, measured=chosen.measured)
            write_file(attempt / layout.MANIFEST, schema.dump(manifest))
        return chosen.engine, chosen.reason

    def attempt(self, engine: Engine) -> Path:
        """Return the folder of an engine's candidate: a bundle, once `candidate` has made it."""
        return self._scratch / f"bundle-{engine}"

    def candidate(self, engine: Engine) -> Manifest:
        """Make the bundle of one engine, proven equal to the source; raise what says why that cannot be."""
        make = {"native": self._proven_native, "litert": self._litert, "savedmodel": self._savedmodel}[engine]
        try:
            return make()
        except OutputMismatchError:
            if not self._leave_out_unconfirmed():
                raise
        return make()

    def _proven_native(self) -> Manifest:
        """Convert, and closer to the letter of the source where answers differ: by rounding, or by another function."""
        for fuse, for_cpu in ((True, True), (False, True)):
            with contextlib.suppress(OutputMismatchError):
                return self._native(fuse=fuse, for_cpu=for_cpu)
        return self._native(fuse=False, for_cpu=False)

    def _native(self, *, fuse: bool, for_cpu: bool) -> Manifest:
        from .native import convert
        from .source.saved_model import SavedModel
        from .source.spool import Spool
        from .write import write_native

        spool = Spool(self._scratch / "spool")
        try:
            with SavedModel(self._source.directory) as source:
                self.enter("convert")
                model = convert(source, spool, fuse=fuse, for_cpu=for_cpu)  # before any call changes the model's state
                self._record(source)
                self._refuse_unproven()
            _return_memory()
            self.enter("write weights")
            write_native(
                self._fresh_attempt("native"),
                model,
                self._source,
                self._requests,
                self._order.op_libraries,
                keep_variables=self._order.keep_variables,
            )
        finally:
            spool.close()
        return self._proved("native")

    def _litert(self) -> Manifest:
        from glowplug.runtime.library import open_library

        from .litert.bundles import convert, write_proven
        from .litert.operations import refuse_left_out, refuse_unknown_source
        from .source.saved_model import SavedModel

        quantization = self._quantization()
        chosen_by_us = self._order.engine == "auto"
        with SavedModel(self._source.directory) as source:
            self._record(source)
            self._refuse_unproven()
            refuse_left_out(source)
            if chosen_by_us:
                refuse_unknown_source(source)
            declared = source.signatures
        _return_memory()
        assert self.recording is not None
        self.enter("convert for LiteRT")
        model = self._scratch / layout.TFLITE
        signatures = convert(
            self._source.directory, declared, self.recording, model, quantization, known_only=chosen_by_us
        )
        self.enter("compare answers")
        return write_proven(
            self.attempt("litert"),
            model,
            signatures,
            self._source,
            self.recording,
            self._requests,
            quantization,
            known_only=chosen_by_us,
            releases={"tensorflow": open_library().version},
        )

    def _tflite(self, model: Path) -> None:
        """Pack a file of LiteRT as it is, without TensorFlow."""
        from .calls.warmup_files import read_requests
        from .litert.bundles import file_signatures, record_file, write_proven

        self.enter("read the model")
        signatures = file_signatures(model)
        requests = read_requests(self._order.warmup, signatures) if self._order.warmup else []
        self.enter("record the model's answers")
        recording = record_file(model, requests, self._scratch)
        self.enter("compare answers")
        source = Located(model.parent, "LiteRT file", model.name)
        write_proven(self.attempt("litert"), model, signatures, source, recording, requests, any_shape=True)

    def _quantization(self) -> Quantization | None:
        from .litert.bundles import DEFAULT_TOLERANCES, Quantization

        kind, tolerance = self._order.quantize, self._order.tolerance
        if kind is None:
            return None
        return Quantization(kind, DEFAULT_TOLERANCES[kind] if tolerance is None else tolerance, self._order.calibration)

    def _savedmodel(self) -> Manifest:
        from .source.saved_model import SavedModel
        from .write import write_savedmodel

        with SavedModel(self._source.directory) as source:
            self._record(source)
            signatures = source.signatures
        self.enter("copy the SavedModel")
        write_savedmodel(
            self._fresh_attempt("savedmodel"), signatures, self._source, self._requests, self._order.op_libraries
        )
        return self._proved("savedmodel")

    def _record(self, source: SavedModel) -> None:
        """Read the warm-up requests and record what the source answers, once."""
        from .calls.recording import record
        from .calls.warmup_files import SERVING_FILE, read_requests

        if self.recording is not None:
            return
        shipped = self._source.directory / SERVING_FILE
        path = self._order.warmup or (shipped if shipped.is_file() else None)
        self._requests = read_requests(path, source.signatures) if path else []
        self.enter("record the model's answers")
        self.recording = record(source, self._requests)

    def _leave_out_unconfirmed(self) -> bool:
        """Record again, without calls that the source does not answer alike twice; say whether there were any."""
        from .calls.recording import record
        from .source.saved_model import SavedModel

        if self.recording is None or self._confirmed:
            return False
        self._confirmed = True
        self.enter("record the model's answers")
        with SavedModel(self._source.directory) as source, SavedModel(self._source.directory) as twin:
            self.recording = record(source, self._requests, twin)
        _return_memory()
        return self.recording.left_out > 0

    def _refuse_unproven(self) -> None:
        """Raise if there is no signature whose answers could be compared. One of several stays, and is named."""
        assert self.recording is not None
        if not any(call.answer is not None for call in self.recording.calls):
            raise UnsupportedModelError(
                "no made-up input suits a signature, so its answers cannot be compared",
                seen=", ".join(self.recording.unproven),
                remedy="give a real request with --warmup",
            )

    def _fresh_attempt(self, engine: Engine) -> Path:
        attempt = self.attempt(engine)
        shutil.rmtree(attempt, ignore_errors=True)
        attempt.mkdir()
        return attempt

    def _proved(self, engine_name: Engine) -> Manifest:
        """Load the written bundle, repeat the recorded calls on it, and write the record into its manifest."""
        from glowplug.loader.open import open_engine

        from .calls.equivalence import compare

        assert self.recording is not None
        self.enter("compare answers")
        attempt = self.attempt(engine_name)
        bundle = open_bundle(attempt)
        engine = open_engine(bundle, Options(trust=True, op_libraries=self._order.op_libraries))
        try:
            equivalence = compare(engine, self.recording)
        finally:
            engine.close()
        manifest = replace(bundle.manifest, equivalence=equivalence)
        write_file(attempt / layout.MANIFEST, schema.dump(manifest))
        return manifest


def _return_memory() -> None:
    """Give the closed model's memory back to the system; glibc would keep it for later."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
