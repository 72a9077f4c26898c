"""`glowplug.pack`: a model in, a bundle out, with its answers proven equal to the source's."""

from __future__ import annotations

import contextlib
import ctypes
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from glowplug.bundle import layout, schema
from glowplug.bundle.reader import open_bundle
from glowplug.bundle.seal import seal
from glowplug.bundle.warmup import Request
from glowplug.core.clock import now_ns
from glowplug.core.errors import (
    OpNotAllowedError,
    OutputMismatchError,
    StorageError,
    TensorFlowError,
    UnsupportedModelError,
    UsageError,
)
from glowplug.core.files import new_directory, refuse_existing, write_file
from glowplug.core.manifest import Manifest
from glowplug.core.notices import held_back
from glowplug.loader.engine import Options
from glowplug.runtime.library import ERROR, set_log_level

from .sources import check_path, locate

if TYPE_CHECKING:
    from .equivalence import Recording
    from .saved_model import SavedModel

Choice = Literal["auto", "native", "savedmodel"]
Progress = Callable[[str], None]
CHOICES: tuple[Choice, ...] = ("auto", "native", "savedmodel")
_NOT_NATIVE = (UnsupportedModelError, OpNotAllowedError, OutputMismatchError, TensorFlowError)


@dataclass(frozen=True, slots=True)
class Packed:
    """What `pack` made. `reason` says why `auto` did not choose the native engine, where it did not."""

    path: Path
    manifest: Manifest
    reason: str | None
    stages_ns: Mapping[str, int]


def pack(
    model: Any,
    output: str | Path,
    *,
    engine: Choice = "auto",
    warmup: str | Path | None = None,
    signatures: Mapping[str, Any] | None = None,
    op_libraries: Sequence[str] = (),
    keep_variables: bool = False,
    force: bool = False,
    progress: Progress | None = None,
) -> Packed:
    """Pack a SavedModel directory, a `.keras` or `.h5` file, a Keras model or a `tf.Module` into a bundle.

    `warmup` is an `.npz`, `.json` or `tf_serving_warmup_requests` file; `signatures` are those of a `tf.Module`;
    `op_libraries` names installed packages of custom operations. With `keep_variables` the bundle also has the values
    of variables that packing folds into others, so that `train.load_weights` finds them all.
    Nothing is left at `output` when packing fails.
    """
    if engine not in CHOICES:
        raise UsageError("there is no such engine", seen=engine, remedy=f"use one of {', '.join(CHOICES)}")
    if isinstance(model, str | Path):
        check_path(Path(model))
    target = Path(output)
    refuse_existing(target, force=force)
    with new_directory(target, force=force) as directory:
        job = _Job(directory, tuple(op_libraries), progress or (lambda stage: None), keep_variables=keep_variables)
        manifest, reason = job.run(model, engine, Path(warmup) if warmup else None, signatures)
    return Packed(target, manifest, reason, job.stages_ns)


class _Job:
    """One run of `pack`, in a directory that becomes the bundle at the end."""

    def __init__(
        self, directory: Path, op_libraries: tuple[str, ...], progress: Progress, *, keep_variables: bool
    ) -> None:
        self._directory = directory
        self._keep_variables = keep_variables
        self._scratch = directory / ".scratch"
        self._op_libraries = op_libraries
        self._progress = progress
        self._requests: list[Request] = []
        self._recording: Recording | None = None
        self._stage: tuple[str, int] | None = None
        self.stages_ns: dict[str, int] = {}

    def run(
        self, model: Any, engine: Choice, warmup: Path | None, signatures: Mapping[str, Any] | None
    ) -> tuple[Manifest, str | None]:
        """Build the bundle and return its manifest, and why it is not native."""
        self._enter("import TensorFlow")
        set_log_level(ERROR)  # inputs that the model refuses are part of the search for some that it takes
        with held_back():
            import tensorflow  # noqa: F401 - here, so that its cost has a name of its own
        from glowplug.runtime.oplibrary import load_op_library

        self._scratch.mkdir()
        for name in self._op_libraries:
            load_op_library(name)
        self._enter("read the model")
        self._source = locate(model, self._scratch, signatures)
        self._warmup = warmup
        manifest, reason = self._choose(engine)
        self._enter("finish")
        for entry in self._attempt.iterdir():
            entry.rename(self._directory / entry.name)
        if manifest.engine == "savedmodel":  # a native bundle needs no trust
            with contextlib.suppress(OSError, StorageError):  # unsealed, it loads with trust=True
                seal(self._directory)
        shutil.rmtree(self._scratch)
        self._leave()
        return manifest, reason

    def _choose(self, engine: Choice) -> tuple[Manifest, str | None]:
        if engine == "savedmodel":
            return self._savedmodel(), None
        try:
            try:
                return self._native(fuse=True), None
            except OutputMismatchError:  # rounding, perhaps: once more with the arithmetic in its own order
                return self._native(fuse=False), None
        except _NOT_NATIVE as error:
            if engine == "native":
                raise
            return self._savedmodel(), f"{error.what}: {error.seen}"

    def _native(self, *, fuse: bool) -> Manifest:
        from .native import convert
        from .saved_model import SavedModel
        from .spool import Spool
        from .write import write_native

        spool = Spool(self._scratch / "spool")
        try:
            with SavedModel(self._source.directory) as source:
                self._enter("convert")
                model = convert(source, spool, fuse=fuse)  # before any call changes the model's state
                self._record(source, need_all=True)
            _return_memory()
            self._enter("write weights")
            self._fresh_attempt()
            write_native(
                self._attempt,
                model,
                self._source,
                self._requests,
                self._op_libraries,
                keep_variables=self._keep_variables,
            )
        finally:
            spool.close()
        return self._proved()

    def _savedmodel(self) -> Manifest:
        from .saved_model import SavedModel
        from .write import write_savedmodel

        with SavedModel(self._source.directory) as source:
            self._record(source, need_all=False)
            signatures = source.signatures
        self._enter("copy the SavedModel")
        self._fresh_attempt()
        write_savedmodel(self._attempt, signatures, self._source, self._requests, self._op_libraries)
        return self._proved()

    def _record(self, source: SavedModel, *, need_all: bool) -> None:
        """Read the warm-up requests and record what the source answers, once."""
        from .equivalence import record
        from .warmup_files import SERVING_FILE, read_requests

        if self._recording is not None:
            return
        shipped = self._source.directory / SERVING_FILE
        path = self._warmup or (shipped if shipped.is_file() else None)
        self._requests = read_requests(path, source.signatures) if path else []
        self._enter("record the model's answers")
        self._recording = record(source, self._requests, need_all=need_all)

    def _fresh_attempt(self) -> None:
        self._attempt = self._scratch / "bundle"
        shutil.rmtree(self._attempt, ignore_errors=True)
        self._attempt.mkdir()

    def _proved(self) -> Manifest:
        """Load the written bundle, repeat the recorded calls on it, and write the record into its manifest."""
        from glowplug.loader.open import open_engine

        from .equivalence import compare

        assert self._recording is not None
        self._enter("compare answers")
        bundle = open_bundle(self._attempt)
        engine = open_engine(bundle, Options(trust=True, op_libraries=self._op_libraries))
        try:
            equivalence = compare(engine, self._recording)
        finally:
            engine.close()
        manifest = replace(bundle.manifest, equivalence=equivalence)
        write_file(self._attempt / layout.MANIFEST, schema.dump(manifest))
        return manifest

    def _enter(self, stage: str) -> None:
        self._leave()
        self._stage = (stage, now_ns())
        self._progress(stage)

    def _leave(self) -> None:
        if self._stage is not None:
            name, began = self._stage
            self.stages_ns[name] = self.stages_ns.get(name, 0) + now_ns() - began
            self._stage = None


def _return_memory() -> None:
    """Give the closed model's memory back to the system; glibc would keep it for later."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
