"""`glowplug.load`: from a path to a model that answers."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what a start needs is imported while TensorFlow's library is being opened
    from pathlib import Path
    from threading import Thread

    from glowplug.bundle.reader import Bundle
    from glowplug.store.progress import Progress as TransferProgress

    from .engines.engine import Engine, Options
    from .model import Model
    from .origin import LocalCopy

    Progress = Callable[[str], None]

_MANIFEST = "bundle.json"  # as in `bundle.layout`, which would bring more with it
_HEAD_BYTES = 1 << 12
_IN_TENSORFLOW = (b'"engine":"native"', b'"engine":"savedmodel"')


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
    transfer: TransferProgress | None = None,
    trusted_keys: Sequence[str | Path] = (),
    require_signature: bool = False,
) -> Model:
    """Load a bundle from a path or a URL.

    `trust` allows bundles with the `savedmodel` engine that somebody else packed; that equals running a program.
    `verify` reads and checks every byte first. `op_libraries` names installed packages of custom operations. Thread
    counts of zero are TensorFlow's own choice; the first model of a process decides them. `progress` is told the name
    of each stage. With `standby` the model is hosted by a child of a native standby, which is started where there is
    none; if that cannot be, it is loaded here, and `info.notes` says why. What a URL names is fetched into the node
    cache, once on this host, and mapped from there; `transfer` is told how far that is. With `trusted_keys`, files of
    public keys, one of them must have signed it; `require_signature` asks for one that the environment trusts.
    """
    tell = progress or (lambda stage: None)
    here = (path, trust, verify, tuple(op_libraries), intra_op_threads, inter_op_threads, tell)
    head = None if standby else _manifest_head(path)
    if head is not None:  # what comes from elsewhere, or is hosted elsewhere, needs more modules
        from .engines import early

        in_tensorflow = any(engine in head for engine in _IN_TENSORFLOW)
        opening = early.open_early() if in_tensorflow else early.open_litert_early()
        try:
            return _load_here(*here, before_engine=None if in_tensorflow else opening)
        finally:
            if opening is not None:
                opening.join()
    from dataclasses import replace

    from .origin import is_url, with_local_copy

    if is_url(path):

        def load_copy(copy: LocalCopy) -> Model:
            _read_ahead(copy.path)
            model = load(
                copy.path,
                trust=trust or (_is_code(copy.path) and copy.signed),
                verify=verify,
                op_libraries=op_libraries,
                intra_op_threads=intra_op_threads,
                inter_op_threads=inter_op_threads,
                progress=progress,
                standby=standby,
            )
            model.keep(copy)
            model.info = replace(model.info, notes=(*copy.notes, *model.info.notes))
            return model

        tell("fetch")
        trusted = None
        if trusted_keys or require_signature:
            from glowplug.store.signature import trust as whom_to_trust

            trusted = whom_to_trust(trusted_keys, required=require_signature)
        threads: list[Thread] = []
        ahead = None if standby else (lambda names: threads.extend(_open_library_ahead(names)))
        try:
            return with_local_copy(path, load_copy, progress=transfer, trusted=trusted, foreseen=ahead)
        finally:
            for thread in threads:
                thread.join()
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
    return _load_here(*here)


def _load_here(
    path: str | Path,
    trust: bool,
    verify: bool,
    op_libraries: tuple[str, ...],
    intra_op_threads: int,
    inter_op_threads: int,
    tell: Progress,
    before_engine: Thread | None = None,
) -> Model:
    from glowplug.bundle.reader import open_bundle
    from glowplug.core.errors import UsageError

    from .engines.engine import Options
    from .model import Model

    if min(intra_op_threads, inter_op_threads) < 0:
        raise UsageError("a thread count cannot be negative", seen=min(intra_op_threads, inter_op_threads))
    if verify:
        from pathlib import Path

        from glowplug.bundle.verify import verify as verify_bundle
        from glowplug.runtime.oplibrary import custom_ops

        tell("verify")
        verify_bundle(Path(path), extra_ops=custom_ops(op_libraries))
    tell("open")
    bundle = open_bundle(path)
    manifest = bundle.manifest
    missing = [name for name in manifest.op_libraries if name not in op_libraries]
    if missing:
        raise UsageError(
            "the model needs libraries of custom operations",
            seen=", ".join(missing),
            remedy=f"install them and pass op_libraries={list(manifest.op_libraries)}",
        )
    options = Options(trust, op_libraries, intra_op_threads, inter_op_threads)
    tell("start")
    if before_engine is not None:
        before_engine.join()  # what LiteRT says on stderr is only held back where no other thread runs
    engine = open_engine(bundle, options)
    tell("ready")
    return Model(engine, bundle)


def _manifest_head(path: str | Path) -> bytes | None:
    """Return the first bytes of what may be a manifest in a folder: they tell which modules will be needed."""
    try:
        with open(os.path.join(path, _MANIFEST), "rb") as stream:  # noqa: PTH118, PTH123 - before pathlib is there
            return stream.read(_HEAD_BYTES)
    except (OSError, TypeError, ValueError):
        return None  # whoever opens the bundle says what is wrong


def _is_code(directory: Path) -> bool:
    """Say whether a bundle needs trust; others need no signature, and nobody is asked for one."""
    from glowplug.bundle import layout

    return (directory / layout.SAVED_MODEL).is_dir()


def _open_library_ahead(names: Sequence[str]) -> list[Thread]:
    """Open TensorFlow's library while the files of a model that needs it are being fetched or waited for.

    Returns the thread that does, to be joined on any way out, as that of `open_early`.
    """
    from glowplug.bundle import layout

    if not any(name == layout.GRAPH or name.startswith(layout.SAVED_MODEL) for name in names):
        return []
    import contextlib
    import threading

    from glowplug.core.errors import GlowplugError

    def open_ahead() -> None:
        from glowplug.runtime.library import open_library

        with contextlib.suppress(GlowplugError):  # who needs it says what is wrong
            open_library()

    thread = threading.Thread(target=open_ahead, name="glowplug-library", daemon=True)
    thread.start()
    return [thread]


def _read_ahead(directory: Path) -> None:
    """Have the weights read ahead of the map, if they are not in the page cache any more."""
    from glowplug.bundle import layout
    from glowplug.core.disk import read_ahead

    path = directory / layout.WEIGHTS
    try:
        size = path.stat().st_size
    except OSError:
        return
    read_ahead.start(list(read_ahead.pieces(str(path), [(0, size)])))


def open_engine(bundle: Bundle, options: Options) -> Engine:
    """Start the engine that the bundle asks for."""
    from importlib import import_module

    from .engines.engine import ENGINES

    module, name = ENGINES[bundle.manifest.engine].split(":")
    engine: Engine = getattr(import_module(f"glowplug.loader.engines.{module}"), name)(bundle, options)
    return engine
