"""`glowplug.pack`: a model in, a bundle out, with its answers proven equal to the source's.

The work is done by a child process. This one imports TensorFlow only for a live model, which it has to export.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from glowplug.bundle.reader import open_bundle
from glowplug.core.clock import now_ns
from glowplug.core.disk.files import new_directory, refuse_existing
from glowplug.core.errors import UsageError
from glowplug.core.manifest import Manifest

from .child import Child, Crash
from .job import CHOICES, SCRATCH, Choice, Order, Progress
from .source.sources import check_path, is_keras_file, locate


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
    tags: str | Sequence[str] | None = None,
    unsafe_lambda: bool = False,
    force: bool = False,
    progress: Progress | None = None,
) -> Packed:
    """Pack a SavedModel directory, a `.keras` or `.h5` file, a Keras model or a `tf.Module` into a bundle.

    `warmup` is an `.npz`, `.json` or `tf_serving_warmup_requests` file; `signatures` are those of a `tf.Module`;
    `op_libraries` names installed packages of custom operations. With `keep_variables` the bundle also has the values
    of variables that packing folds into others, so that `train.load_weights` finds them all. `tags` choose among the
    graphs of a SavedModel. `unsafe_lambda` lets the Python code of a Keras file's Lambda layers run.
    Nothing is left at `output` when packing fails.
    """
    if engine not in CHOICES:
        raise UsageError("there is no such engine", seen=engine, remedy=f"use one of {', '.join(CHOICES)}")
    if isinstance(model, str | Path):
        check_path(Path(model))
    target = Path(output)
    refuse_existing(target, force=force)
    stages = _Stages(progress)
    with contextlib.ExitStack() as children, new_directory(target, force=force) as directory:
        order = Order(
            directory,
            Path(model).absolute() if isinstance(model, str | Path) else None,
            engine=engine,
            warmup=Path(warmup).absolute() if warmup else None,
            op_libraries=tuple(op_libraries),
            keep_variables=keep_variables,
            tags=(tags,) if isinstance(tags, str) else tags if tags is None else tuple(tags),
            unsafe_lambda=unsafe_lambda,
        )
        try:
            reason = _run(order, model, signatures, children, stages)
            manifest = open_bundle(directory).manifest
        except BaseException:
            children.close()  # before the directory goes that they write into
            raise
    stages.leave()
    return Packed(target, manifest, reason, stages.durations_ns)


def _run(
    order: Order, model: Any, signatures: Mapping[str, Any] | None, children: contextlib.ExitStack, stages: _Stages
) -> str | None:
    """Have a child do it. If TensorFlow dies while it converts, another child packs the model as it is."""
    child = children.enter_context(contextlib.closing(Child(order.directory)))
    if order.model is None or (is_keras_file(order.model) and "keras" in sys.modules):
        # A live model is in this process alone, and so may be the custom classes of a Keras file.
        stages.enter("read the model")
        scratch = order.directory / SCRATCH
        scratch.mkdir()
        order = replace(order, located=locate(model, scratch, signatures, unsafe_lambda=order.unsafe_lambda))
    try:
        return child.run(order, stages.enter)
    except Crash as crash:
        if order.engine != "auto":
            raise crash.as_error() from crash
        reason = str(crash.as_error())
    second = children.enter_context(contextlib.closing(Child(order.directory)))
    try:
        second.run(replace(order, engine="savedmodel"), stages.enter)
    except Crash as crash:
        raise crash.as_error() from crash
    return reason


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
