"""`glowplug.load`: from a path to a model that answers."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:  # what a start needs is imported while TensorFlow's library is being opened
    from pathlib import Path
    from threading import Thread

    from glowplug.bundle.reader import Bundle
    from glowplug.store.progress import Progress as TransferProgress
    from glowplug.store.signature import Trust

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
    wishes = _Wishes(trust, verify, tuple(op_libraries), intra_op_threads, inter_op_threads)
    from_url = _is_url(path)
    if standby and not from_url:
        return _load_in_standby(path, wishes, tell)
    head = None if standby else _manifest_head(_probable_copy(str(path)) if from_url else path)
    in_tensorflow = head is not None and any(engine in head for engine in _IN_TENSORFLOW)
    opening: Thread | None = None
    if head is not None:
        from .engines import early

        if from_url:
            _import_client(str(path))
        opening = early.open_early() if in_tensorflow else early.open_litert_early()
    before_engine = None if in_tensorflow else opening
    try:
        if not from_url:
            return _load_here(path, wishes, tell, before_engine)
        trusted = None
        if trusted_keys or require_signature:
            from glowplug.store.signature import trust as whom_to_trust

            trusted = whom_to_trust(trusted_keys, required=require_signature)
        return _load_url(str(path), wishes, tell, before_engine, standby=standby, transfer=transfer, trusted=trusted)
    finally:
        if opening is not None:
            opening.join()


class _Wishes(NamedTuple):
    """How a user wants a model to be loaded."""

    trust: bool
    verify: bool
    op_libraries: tuple[str, ...]
    intra_op_threads: int
    inter_op_threads: int


def _load_url(
    url: str,
    wishes: _Wishes,
    tell: Progress,
    before_engine: Thread | None,
    *,
    standby: bool,
    transfer: TransferProgress | None,
    trusted: Trust | None,
) -> Model:
    from .origin import with_local_copy

    def load_copy(copy: LocalCopy) -> Model:
        _read_ahead(copy.path)
        its = wishes._replace(trust=wishes.trust or (_is_code(copy.path) and copy.signed))
        if before_engine is not None:
            before_engine.join()
        model = load(copy.path, progress=tell, standby=standby, **its._asdict())
        model.keep(copy)
        return model

    tell("fetch")
    threads: list[Thread] = []
    ahead = None if standby else (lambda names: threads.extend(_open_library_ahead(names)))
    try:
        return with_local_copy(url, load_copy, progress=transfer, trusted=trusted, foreseen=ahead)
    finally:
        for thread in threads:
            thread.join()


def _load_in_standby(path: str | Path, wishes: _Wishes, tell: Progress) -> Model:
    from glowplug.core.errors import StandbyError

    from .remote import load_remotely

    tell("start")
    try:
        remote = load_remotely(path, wishes._asdict())
    except StandbyError as error:
        local = load(path, progress=tell, **wishes._asdict())
        local.note(f"loaded in this process: {error}")
        return local
    tell("ready")
    return remote


def _load_here(path: str | Path, wishes: _Wishes, tell: Progress, before_engine: Thread | None) -> Model:
    from glowplug.bundle.reader import open_bundle
    from glowplug.core.errors import UsageError

    from .engines.engine import Options
    from .model import Model

    fewest_threads = min(wishes.intra_op_threads, wishes.inter_op_threads)
    if fewest_threads < 0:
        raise UsageError("a thread count cannot be negative", seen=fewest_threads)
    if wishes.verify:
        from pathlib import Path

        from glowplug.bundle.verify import verify as verify_bundle
        from glowplug.runtime.oplibrary import custom_ops

        tell("verify")
        verify_bundle(Path(path), extra_ops=custom_ops(wishes.op_libraries))
    tell("open")
    bundle = open_bundle(path)
    manifest = bundle.manifest
    missing = [name for name in manifest.op_libraries if name not in wishes.op_libraries]
    if missing:
        raise UsageError(
            "the model needs libraries of custom operations",
            seen=", ".join(missing),
            remedy=f"install them and pass op_libraries={list(manifest.op_libraries)}",
        )
    options = Options(wishes.trust, wishes.op_libraries, wishes.intra_op_threads, wishes.inter_op_threads)
    tell("start")
    if before_engine is not None:
        before_engine.join()  # what LiteRT says on stderr is only held back where no other thread runs
    engine = open_engine(bundle, options)
    tell("ready")
    return Model(engine, bundle)


def _probable_copy(url: str) -> str | None:
    """Return where the copy of a URL lies, if there is one. Whoever loads it looks again, and checks."""
    from glowplug.store.node_cache.guess import probable_content

    return probable_content(url)


def _import_client(url: str) -> None:
    """Import what will ask the origin, if that has to be asked."""
    from glowplug.store.node_cache.guess import import_client, pin_of

    if pin_of(url) is None:
        import_client(url)


def _is_url(path: object) -> bool:
    """Say what `origin.is_url` says, which is imported only for what may be one."""
    if not isinstance(path, str) or not (":/" in path or "//" in path):
        return False
    if "://" in path:
        return True
    from . import origin

    return origin.is_url(path)


def _manifest_head(path: str | Path | None) -> bytes | None:
    """Return the first bytes of what may be a manifest in a folder: they tell which modules will be needed."""
    if path is None:
        return None
    try:
        place = os.path.join(path, _MANIFEST)  # noqa: PTH118 - before pathlib is there
        if not stat.S_ISREG(os.stat(place).st_mode):  # noqa: PTH116
            return None
        descriptor = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return os.read(descriptor, _HEAD_BYTES)
        finally:
            os.close(descriptor)
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
