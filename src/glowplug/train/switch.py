"""`enable()`, `disable()` and `enabled()`."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from glowplug.core.errors import StorageError

from . import releases, seam, xla
from .caching import Caching
from .legacy_keras import LegacyNote
from .notes import Notes
from .optimised import seam as call_seam
from .skipping import LoadPatch
from .trace.entry_store import DirectoryStore, EntryStore, MemoryStore, default_directory

MAX_BYTES = 4_000_000_000


class _Current:
    """What is on at the moment."""

    caching: Caching | None = None
    patches: tuple[seam.Patch | LoadPatch | LegacyNote | call_seam.CallPatch, ...] = ()


def enable(
    cache_dir: str | os.PathLike[str] | None = None, *, verify: bool = False, max_bytes: int = MAX_BYTES
) -> None:
    """Keep the traces of Keras' steps and of `train.function`, so that the next run starts without tracing.

    `cache_dir` defaults to `GLOWPLUG_CACHE_DIR` or the user's cache folder; it must belong to this user
    alone. `verify` traces all the same and compares: use it to check a program, not to make it fast. Calling
    it again replaces the settings.
    """
    _import_quickly()  # `glowplug run` enables as soon as Keras is imported
    disable()
    notes = Notes()
    store: EntryStore
    try:
        directory = default_directory() if cache_dir is None else Path(cache_dir)
        store = DirectoryStore(directory)
    except StorageError as error:
        notes.warn(f"traces are kept for this process alone: {error}")
        store = MemoryStore()
    else:
        with contextlib.suppress(OSError):  # a folder that can only be read still has traces to restore
            xla.enable_persistent_cache(directory)
    _Current.caching = Caching(store, verify=verify, max_bytes=max_bytes, notes=notes)
    _Current.patches = (*_keras_patches(_Current.caching), *_tensorflow_patches(_Current.caching))
    for patch in _Current.patches:
        patch.apply()


def prepare() -> None:
    """Do ahead what `enable()` finds out about the installed Keras, for processes that are forked from this one."""
    import keras

    if keras.backend.backend() == "tensorflow":
        seam.unknown_methods()
    releases.unknown_tensorflow()


def disable() -> None:
    """Undo `enable()`: later steps are traced as TensorFlow does. Nothing happens if it is not on."""
    caching, _Current.caching = _Current.caching, None
    patches, _Current.patches = _Current.patches, ()
    if caching is not None:
        caching.active = False
    for patch in patches:
        patch.revert()
    xla.disable_persistent_cache()


@contextlib.contextmanager
def enabled(
    cache_dir: str | os.PathLike[str] | None = None, *, verify: bool = False, max_bytes: int = MAX_BYTES
) -> Iterator[None]:
    """`enable()` for the length of a block; what was on before is on again after it."""
    before = _Current.caching, _Current.patches
    for patch in _Current.patches:
        patch.revert()
    _Current.caching, _Current.patches = None, ()
    enable(cache_dir, verify=verify, max_bytes=max_bytes)
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


def counts() -> dict[str, int]:
    """Return how many functions were `restored`, `traced`, `refused` and `stored` since `enable()`."""
    return {} if _Current.caching is None else dict(_Current.caching.counts)


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


def _import_quickly() -> None:
    """Import Keras and TensorFlow. Nothing they make is garbage, so collecting it is put off, then
    left out.
    """
    if "tensorflow" in sys.modules or not gc.isenabled():
        import_module("keras")
        return
    gc.disable()
    try:
        import_module("keras")
    finally:
        gc.enable()
    gc.freeze()
