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
from glowplug.core.errors import (
    OpNotAllowedError,
    OutputMismatchError,
    StorageError,
    TensorFlowError,
    UnsupportedModelError,
)
from glowplug.core.manifest import Manifest
from glowplug.core.notices import held_back
from glowplug.loader.engine import Options
from glowplug.runtime.library import ERROR, set_log_level

from .source.sources import SAVED_MODEL, Located, locate
from .source.tags import chosen_tags, retagged

if TYPE_CHECKING:
    from .calls.equivalence import Recording
    from .source.saved_model import SavedModel

Choice = Literal["auto", "native", "savedmodel"]
Progress = Callable[[str], None]
CHOICES: tuple[Choice, ...] = ("auto", "native", "savedmodel")
SCRATCH = ".scratch"
_NOT_NATIVE = (UnsupportedModelError, OpNotAllowedError, OutputMismatchError, TensorFlowError)


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
        self._enter = progress
        self._requests: list[Request] = []
        self._recording: Recording | None = None

    def run(self) -> str | None:
        """Build the bundle, and say why it is not native where `auto` did not choose that."""
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
            self._enter("read the model")
            self._source = locate(self._order.model, self._scratch, unsafe_lambda=self._order.unsafe_lambda)
        if self._source.kind == SAVED_MODEL:
            tags = chosen_tags(self._source.directory, self._order.tags)
            directory = retagged(self._source.directory, tags, self._scratch / "chosen")
            self._source = replace(self._source, directory=directory)
        manifest, reason = self._choose()
        self._enter("finish")
        for entry in self._attempt.iterdir():
            entry.rename(self._order.directory / entry.name)
        if manifest.engine == "savedmodel":  # a native bundle needs no trust
            with contextlib.suppress(OSError, StorageError):  # unsealed, it loads with trust=True
                seal(self._order.directory)
        shutil.rmtree(self._scratch)
        return reason

    def _choose(self) -> tuple[Manifest, str | None]:
        if self._order.engine == "savedmodel":
            return self._savedmodel(), None
        try:
            return self._proven_native(), None
        except _NOT_NATIVE as error:
            if self._order.engine == "native":
                raise
            return self._savedmodel(), " ".join(str(error).split())

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
                self._enter("convert")
                model = convert(source, spool, fuse=fuse, for_cpu=for_cpu)  # before any call changes the model's state
                self._record(source)
                self._refuse_unproven()
            _return_memory()
            self._enter("write weights")
            self._fresh_attempt()
            write_native(
                self._attempt,
                model,
                self._source,
                self._requests,
                self._order.op_libraries,
                keep_variables=self._order.keep_variables,
            )
        finally:
            spool.close()
        return self._proved()

    def _savedmodel(self) -> Manifest:
        from .source.saved_model import SavedModel
        from .write import write_savedmodel

        with SavedModel(self._source.directory) as source:
            self._record(source)
            signatures = source.signatures
        self._enter("copy the SavedModel")
        self._fresh_attempt()
        write_savedmodel(self._attempt, signatures, self._source, self._requests, self._order.op_libraries)
        return self._proved()

    def _record(self, source: SavedModel) -> None:
        """Read the warm-up requests and record what the source answers, once."""
        from .calls.equivalence import record
        from .calls.warmup_files import SERVING_FILE, read_requests

        if self._recording is not None:
            return
        shipped = self._source.directory / SERVING_FILE
        path = self._order.warmup or (shipped if shipped.is_file() else None)
        self._requests = read_requests(path, source.signatures) if path else []
        self._enter("record the model's answers")
        self._recording = record(source, self._requests)

    def _refuse_unproven(self) -> None:
        """Raise if there is no signature whose answers could be compared. One of several stays, and is named."""
        assert self._recording is not None
        if not any(call.answer is not None for call in self._recording.calls):
            raise UnsupportedModelError(
                "no made-up input suits a signature, so its answers cannot be compared",
                seen=", ".join(self._recording.unproven),
                remedy="give a real request with --warmup",
            )

    def _fresh_attempt(self) -> None:
        self._attempt = self._scratch / "bundle"
        shutil.rmtree(self._attempt, ignore_errors=True)
        self._attempt.mkdir()

    def _proved(self) -> Manifest:
        """Load the written bundle, repeat the recorded calls on it, and write the record into its manifest."""
        from glowplug.loader.open import open_engine

        from .calls.equivalence import compare

        assert self._recording is not None
        self._enter("compare answers")
        bundle = open_bundle(self._attempt)
        engine = open_engine(bundle, Options(trust=True, op_libraries=self._order.op_libraries))
        try:
            equivalence = compare(engine, self._recording)
        finally:
            engine.close()
        manifest = replace(bundle.manifest, equivalence=equivalence)
        write_file(self._attempt / layout.MANIFEST, schema.dump(manifest))
        return manifest


def _return_memory() -> None:
    """Give the closed model's memory back to the system; glibc would keep it for later."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
