"""`glowplug.pack`: a model in, a bundle out, with its answers proven equal to the source's."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from ..bundle import allowlist, layout, schema
from ..bundle.reader import open_bundle
from ..bundle.writer import BundleWriter
from ..core.clock import now_ns
from ..core.errors import (
    GlowplugError,
    OpNotAllowedError,
    OutputMismatchError,
    UnsupportedModelError,
    UsageError,
)
from ..core.files import new_directory, refuse_existing, write_file
from ..core.manifest import Asset, InitStep, Manifest, Signature
from ..core.version import VERSION
from ..load.engine import Options
from ..load.native import NativeEngine
from ..load.savedmodel import SavedModelEngine
from ..load.seal import seal
from ..load.warmup import Request, encode

Choice = Literal["auto", "native", "savedmodel"]
Progress = Callable[[str], None]
CHOICES: tuple[Choice, ...] = ("auto", "native", "savedmodel")


@dataclass(frozen=True, slots=True)
class Packed:
    """What `pack` made. `reason` says why the engine is not `native`, where it is not."""

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
    force: bool = False,
    progress: Progress | None = None,
) -> Packed:
    """Pack a SavedModel directory, a `.keras` or `.h5` file, a Keras model or a `tf.Module` into a bundle.

    `warmup` is an `.npz`, `.json` or `tf_serving_warmup_requests` file; `signatures` are those of a `tf.Module`.
    Nothing is left at `output` when packing fails.
    """
    if engine not in CHOICES:
        raise UsageError("there is no such engine", seen=engine, remedy=f"use one of {', '.join(CHOICES)}")
    target = Path(output)
    refuse_existing(target, force=force)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
    job = _Job(engine, tuple(op_libraries), progress or (lambda stage: None))
    with new_directory(target, force=force) as directory:
        manifest, reason = job.run(model, directory, warmup, signatures)
    return Packed(target, manifest, reason, job.stages_ns)


class _Job:
    """One run of `pack`. `directory` is the bundle that grows under a temporary name."""

    def __init__(self, engine: Choice, op_libraries: tuple[str, ...], progress: Progress) -> None:
        self._engine = engine
        self._op_libraries = op_libraries
        self._progress = progress
        self.stages_ns: dict[str, int] = {}
        self._stage: tuple[str, int] | None = None

    def run(
        self, model: Any, directory: Path, warmup: str | Path | None, signatures: Mapping[str, Any] | None
    ) -> tuple[Manifest, str | None]:
        """Pack and return the manifest, and why the engine is not `native`."""
        self._enter("import TensorFlow")
        import tensorflow  # noqa: F401 - so that its cost has a name of its own

        from ..runtime.oplibrary import load_op_library
        from .equivalence import record
        from .saved_model import SavedModel
        from .sources import locate
        from .warmup_files import SERVING_FILE, read_requests

        self._ops = frozenset[str]().union(*(load_op_library(name) for name in self._op_libraries))
        scratch = directory / ".scratch"
        scratch.mkdir()
        with ExitStack() as stack:
            stack.callback(shutil.rmtree, scratch, ignore_errors=True)
            self._enter("read model")
            self._located = locate(model, scratch, signatures)
            self._bundle = directory / ".bundle"
            with SavedModel(self._located.directory) as source:
                own = self._located.directory / SERVING_FILE
                path = Path(warmup) if warmup else own if own.is_file() else None
                self._requests = read_requests(path, source.signatures) if path else []
                self._enter("record answers")
                self._recording = record(source, self._requests)
                reason = self._build_native(source, scratch) if self._engine != "savedmodel" else "--engine savedmodel"
                if reason is not None:
                    self._build_savedmodel(source)
            if reason is None:
                reason = self._settle_native(scratch)
            manifest = self._check_and_record()
        for entry in self._bundle.iterdir():
            entry.rename(directory / entry.name)
        self._bundle.rmdir()
        self._leave()
        return manifest, reason

    def _enter(self, stage: str) -> None:
        self._leave()
        self._stage = (stage, now_ns())
        self._progress(stage)

    def _leave(self) -> None:
        if self._stage is not None:
            name, began = self._stage
            self.stages_ns[name] = self.stages_ns.get(name, 0) + now_ns() - began
            self._stage = None
