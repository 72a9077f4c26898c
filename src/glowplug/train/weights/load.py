"""`load_weights`: the weights of a live Keras model, out of whatever they were saved in.

Three steps, and a failure in the first two leaves the model as it was: match and check every variable; read every
value, several at a time; assign.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from glowplug.bundle import layout
from glowplug.core.errors import NotAModelError, UsageError
from glowplug.loader.engines.savedmodel import is_saved_model

from .entry import Entry, Plan
from .matching import check
from .regions import RegionFile
from .variables import LoadableVariable, targets

Progress = Callable[[int, int], None]


def load_weights(
    model: Any, path: str | os.PathLike[str], *, progress: Progress | None = None, mapped: bool = True
) -> None:
    """Load a Keras 3 model's weights from a file or folder of any format that Keras, TensorFlow or Glowplug writes.

    All variables are set, or none. `progress` is called with the bytes done and the bytes in all. Where the format
    allows, the variables use the mapped file until they are trained; `mapped=False` copies everything at once, for a
    file on slow network storage or one that something may overwrite in place.
    """
    place = Path(path)
    if not callable(progress) and progress is not None:
        raise UsageError("progress must be a function of two numbers", seen=type(progress).__name__)
    wanted = targets(model)
    with ExitStack() as files:
        plan = _bind(model, wanted, place, files, mapped=mapped)
        check(plan, place)
        pairs = [(one.variable, one.entry) for one in plan.bindings if one.entry is not None]
        values = _fetch([entry for _, entry in pairs], progress)
    for (variable, _), value in zip(pairs, values, strict=True):
        variable.assign(value)
    _finalize(model)


def _bind(model: Any, wanted: tuple[LoadableVariable, ...], path: Path, files: ExitStack, *, mapped: bool) -> Plan:
    """Choose the format by what is there, not by the name alone."""
    if (path / layout.MANIFEST).is_file():
        from . import bundle

        return bundle.bind(model, wanted, path, files, mapped=mapped)
    from . import checkpoint, saved_model

    if is_saved_model(path):
        return saved_model.bind(model, wanted, path)
    if path.suffix == ".safetensors":
        from . import safetensors

        return safetensors.bind(wanted, path, files, mapped=mapped)
    if path.suffix in (".h5", ".hdf5", ".keras") and path.is_file():
        return _bind_hdf5(model, wanted, files.enter_context(RegionFile(path, mapped=mapped)), files)
    prefix = checkpoint.prefix_of(path)
    if prefix is not None:
        return checkpoint.bind(model, wanted, prefix)
    raise NotAModelError(
        "no weights that Glowplug knows" if path.exists() else "there is nothing here",
        seen=path,
        remedy="give a bundle, .weights.h5, .h5, .keras, .safetensors, a checkpoint's prefix or a SavedModel",
    )


def _bind_hdf5(model: Any, wanted: tuple[LoadableVariable, ...], file: RegionFile, files: ExitStack) -> Plan:
    from . import hdf5, keras_file, legacy_h5, weights_h5

    base: int | None = 0
    if file.path.suffix == ".keras":
        root, base = keras_file.open_weights(file, files)
    else:
        root = hdf5.open_file(file.path, file, files)
    entries = hdf5.entries(root, file, base)
    if legacy_h5.is_legacy(root):
        return legacy_h5.bind(model, wanted, root, entries)
    return weights_h5.bind(model, wanted, entries)


def _fetch(entries: Sequence[Entry], progress: Progress | None) -> list[Any]:
    """Read every value before any is assigned: what fails here leaves the model untouched."""
    total = sum(entry.nbytes for entry in entries)
    done = 0
    lock = threading.Lock()

    def fetch(entry: Entry) -> Any:
        nonlocal done
        value = entry.fetch()
        if progress is not None:
            with lock:
                done += entry.nbytes
                progress(done, total)
        return value

    if progress is not None:
        progress(0, total)
    workers = max(2, min(8, len(os.sched_getaffinity(0))))
    with ThreadPoolExecutor(workers, thread_name_prefix="glowplug-weights") as pool:
        return list(pool.map(fetch, entries))


def _finalize(model: Any) -> None:
    """Recompute what layers derive from their weights, as Keras does after a load."""
    for layer in model._flatten_layers():
        if hasattr(layer, "finalize_state") and layer.weights:
            layer.finalize_state()
