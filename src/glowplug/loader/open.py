"""`glowplug.load`: from a path to a model that answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from glowplug.bundle.reader import Bundle, open_bundle
from glowplug.core.errors import UnsupportedModelError, UsageError

from .engine import Engine, Options
from .model import Info, Model

Progress = Callable[[str], None]


def load(
    path: str | Path,
    *,
    trust: bool = False,
    verify: bool = False,
    op_libraries: Sequence[str] = (),
    intra_op_threads: int = 0,
    inter_op_threads: int = 0,
    progress: Progress | None = None,
    standby: bool = False,
) -> Model:
    """Load a bundle.

    `trust` allows bundles with the `savedmodel` engine that somebody else packed; that equals running a program.
    `verify` reads and checks every byte first. `op_libraries` names installed packages of custom operations. Thread
    counts of zero are TensorFlow's own choice; the first model of a process decides them. `progress` is told the name
    of each stage. With `standby` the model is hosted by a child of a native standby, which is started where there is
    none; if that cannot be, it is loaded here, and `info.notes` says why.
    """
    tell = progress or (lambda stage: None)
    if standby:
        from glowplug.core.errors import StandbyError

        from .remote import load_remotely

        wishes: dict[str, Any] = {
            "trust": trust,
            "verify": verify,
            "op_libraries": list(op_libraries),
            "intra_op_threads": intra_op_threads,
            "inter_op_threads": inter_op_threads,
        }
        tell("start")
        try:
            remote = load_remotely(path, wishes)
        except StandbyError as error:
            local = load(path, progress=progress, **wishes)
            local.info = replace(local.info, notes=(*local.info.notes, f"loaded in this process: {error}"))
            return local
        tell("ready")
        return remote
    if min(intra_op_threads, inter_op_threads) < 0:
        raise UsageError("a thread count cannot be negative", seen=min(intra_op_threads, inter_op_threads))
    directory = Path(path)
    if verify:
        from glowplug.bundle.verify import verify as verify_bundle
        from glowplug.runtime.oplibrary import custom_ops

        tell("verify")
        verify_bundle(directory, extra_ops=custom_ops(op_libraries))
    tell("open")
    bundle = open_bundle(directory)
    manifest = bundle.manifest
    missing = [name for name in manifest.op_libraries if name not in op_libraries]
    if missing:
        raise UsageError(
            "the model needs libraries of custom operations",
            seen=", ".join(missing),
            remedy=f"install them and pass op_libraries={list(manifest.op_libraries)}",
        )
    options = Options(trust, tuple(op_libraries), intra_op_threads, inter_op_threads)
    tell("start")
    engine = open_engine(bundle, options)
    tell("ready")
    info = Info(
        bundle.root,
        manifest.engine,
        tuple(engine.notes),
        bundle.warmup_files,
        manifest.provenance,
        manifest.equivalence,
    )
    return Model(engine, info, bundle)


def open_engine(bundle: Bundle, options: Options) -> Engine:
    """Start the engine that the bundle asks for."""
    if bundle.manifest.engine == "native":
        from .native import NativeEngine

        return NativeEngine(bundle, options)
    if bundle.manifest.engine == "savedmodel":
        from .savedmodel import SavedModelEngine

        return SavedModelEngine(bundle, options)
    raise UnsupportedModelError(
        "this version of Glowplug cannot run this engine",
        seen=bundle.manifest.engine,
        remedy="pack with --engine auto",
    )


async def load_async(path: str | Path, **options: object) -> Model:
    """Load a bundle without blocking the event loop. Options are those of `load`; `progress` is called in a thread."""
    import asyncio

    return await asyncio.to_thread(load, path, **options)  # type: ignore[arg-type]
