"""`enable()`, `disable()` and `enabled()`."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from glowplug.core.errors import StorageError
from glowplug.imports.quickly import import_quickly
from glowplug.store.location import is_url

from . import releases, xla
from .caching import Caching
from .fingerprint.stock.survey import survey
from .fresh.skipping import LoadPatch
from .notes import Notes
from .optimised import seam as call_seam
from .trace.entry_store import DirectoryStore, EntryStore, MemoryStore, default_directory
from .trainer import seam
from .trainer.legacy_keras import LegacyNote

if TYPE_CHECKING:
    from .travel.remote import RemoteTraces

VARIABLE = "GLOWPLUG_TRACE_CACHE_DIR"
MAX_BYTES = 4_000_000_000
_RETRIES = 2  # of a storage that has traces: without them a program goes on as well


class _Current:
    """What is on at the moment."""

    caching: Caching | None = None
    patches: tuple[seam.Patch | LoadPatch | LegacyNote | call_seam.CallPatch, ...] = ()


def enable(
    cache_dir: str | os.PathLike[str] | None = None,
    *,
    verify: bool = False,
    max_bytes: int = MAX_BYTES,
    read_only: bool = False,
    trust: bool = False,
    trusted_keys: Iterable[str | os.PathLike[str]] = (),
    sign_key: str | os.PathLike[str] | None = None,
) -> None:
    """Keep the traces of Keras' steps and of `train.function`, so that the next run starts without tracing.

    `cache_dir` defaults to `GLOWPLUG_TRACE_CACHE_DIR`, to `GLOWPLUG_CACHE_DIR` or to the user's cache folder; it must
    belong to this user alone. It may be a URL: traces then come from there as well and, unless it is `read_only`, go
    there, signed with `sign_key`. A trace is code, so one from a URL needs a signature by one of `trusted_keys` (or of
    `GLOWPLUG_TRUSTED_KEYS`), or `trust=True`. `verify` traces all the same and compares: use it to check a program, not
    to make it fast. Calling it again replaces the settings.
    """
    import_quickly("keras")  # `glowplug run` enables as soon as Keras is imported
    disable()
    notes = Notes()
    place = os.environ.get(VARIABLE) or None if cache_dir is None else os.fspath(cache_dir)
    store, remote = _open(place, notes, read_only, trust, trusted_keys, sign_key)
    if store.path is not None and not store.read_only:
        with contextlib.suppress(OSError):  # a folder that can only be read still has traces to restore
            xla.enable_persistent_cache(store.path)
    _Current.caching = Caching(
        store, verify=verify, max_bytes=max_bytes, notes=notes, remote=remote, read_only=read_only
    )
    _Current.patches = (*_keras_patches(_Current.caching), *_tensorflow_patches(_Current.caching))
    for patch in _Current.patches:
        patch.apply()


def _open(
    place: str | None,
    notes: Notes,
    read_only: bool,
    trust: bool,
    keys: Iterable[str | os.PathLike[str]],
    sign: str | os.PathLike[str] | None,
) -> tuple[EntryStore, RemoteTraces | None]:
    """Return where traces are kept on this machine, and where else. What cannot be used is said, and left out."""
    remote = None
    try:
        if place is not None and is_url(place):
            remote, directory = _open_remote(place, trust, keys, sign)
        else:
            directory = default_directory() if place is None else Path(place)
        return DirectoryStore(directory, read_only=read_only and remote is None), remote
    except StorageError as error:
        notes.warn(f"traces are kept for this process alone: {error}")
        return MemoryStore(), remote


def _open_remote(
    url: str, trust: bool, keys: Iterable[str | os.PathLike[str]], sign: str | os.PathLike[str] | None
) -> tuple[RemoteTraces, Path]:
    from glowplug.store.location import parse
    from glowplug.store.settings import from_environment

    from .travel.elsewhere import local_folder
    from .travel.remote import RemoteTraces
    from .travel.terms import terms

    location = parse(url)
    chosen = terms(trust=trust, keys=[Path(key) for key in keys], sign=None if sign is None else Path(sign))
    retries = min(_RETRIES, from_environment().retries)
    remote = RemoteTraces(location, chosen, retries=retries)
    return remote, local_folder(location, chosen)


def prepare() -> None:
    """Do ahead what `enable()` finds out about the installed Keras, and look through stock code, for processes that are
    forked from this one.
    """
    import keras

    if keras.backend.backend() == "tensorflow":
        seam.unknown_methods()
        survey()
    releases.unknown_tensorflow()


def disable() -> None:
    """Undo `enable()`: later steps are traced as TensorFlow does. Nothing happens if it is not on."""
    caching, _Current.caching = _Current.caching, None
    patches, _Current.patches = _Current.patches, ()
    if caching is not None:
        caching.active = False
        caching.finish()
    for patch in patches:
        patch.revert()
    xla.disable_persistent_cache()


@contextlib.contextmanager
def enabled(cache_dir: str | os.PathLike[str] | None = None, **options: Any) -> Iterator[None]:
    """`enable()` for the length of a block, with its options; what was on before is on again after it."""
    before = _Current.caching, _Current.patches
    for patch in _Current.patches:
        patch.revert()
    _Current.caching, _Current.patches = None, ()
    enable(cache_dir, **options)
    try:
        yield
    finally:
        disable()
        _Current.caching, _Current.patches = before
        for patch in _Current.patches:
            patch.apply()


def current_caching() -> Caching | None:
    """Return the caching that is on, if any."""
    return _Current.caching


def counts() -> Counter[str]:
    """Return how many functions were `restored`, `traced`, `refused` and `stored` since `enable()`."""
    return Counter() if _Current.caching is None else Counter(_Current.caching.counts)


def _keras_patches(caching: Caching) -> tuple[seam.Patch | LoadPatch | LegacyNote, ...]:
    import keras

    unknown_tensorflow = releases.unknown_tensorflow()
    if unknown_tensorflow:
        caching.active = False
        caching.notes.warn(f"{unknown_tensorflow}: all functions stay stock")
        return ()
    if keras.backend.backend() != "tensorflow":
        caching.notes.warn(f"Keras uses {keras.backend.backend()}: its steps stay stock")
        return ()
    unknown = seam.unknown_methods()
    if unknown:
        caching.notes.warn(f"Keras {keras.__version__} is not known to Glowplug ({', '.join(unknown)}): stock steps")
        return ()
    return seam.Patch(caching), LoadPatch(), LegacyNote(caching.notes)


def _tensorflow_patches(caching: Caching) -> tuple[call_seam.CallPatch, ...]:
    if not caching.active:
        return ()
    unknown = call_seam.unknown_methods()
    if unknown:
        caching.notes.tell(f"this TensorFlow is not known ({', '.join(unknown)}): it optimises every graph anew")
        return ()
    return (call_seam.CallPatch(caching),)
