"""Brings whatever the user has into a SavedModel directory: a path, a Keras model, a `tf.Module`."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from glowplug.bundle.layout import MANIFEST
from glowplug.bundle.tflite.model import SUFFIX, check_tflite_file
from glowplug.core.disk import refusals
from glowplug.core.errors import GlowplugError, NotAModelError, StorageError, UsageError
from glowplug.loader.engines.savedmodel import FILES, is_saved_model
from glowplug.loader.engines.tflite_file import open_tflite

from .keras_files import SUFFIXES, export_keras, first_line, is_keras_model, load_keras

SAVED_MODEL = "SavedModel"  # the kind of a source that is one already
_FIRST_TAGS = (b"\x08", b"\x12")  # SavedModel's fields: the version of its schema, its graphs
_HDF5 = b"\x89HDF\r\n\x1a\n"
_HDF5_OFFSETS = (0, *(512 << power for power in range(8)))  # a block of the user's may stand before it


@dataclass(frozen=True, slots=True)
class Located:
    """A SavedModel directory and what it was made from."""

    directory: Path
    kind: str
    name: str


def locate(
    model: Any, scratch: Path, signatures: Mapping[str, Any] | None = None, *, unsafe_lambda: bool = False
) -> Located:
    """Return a SavedModel for `model`, exporting into `scratch` where it is none yet."""
    if isinstance(model, str | Path):
        return _from_path(Path(model), scratch, unsafe_lambda=unsafe_lambda)
    import tensorflow as tf

    target = scratch / "saved_model"
    if is_keras_model(model):
        export_keras(model, target)
        return Located(target, "Keras model", model.name)
    if isinstance(model, tf.Module):
        _save_module(model, target, signatures)
        return Located(target, "tf.Module", model.name)
    raise NotAModelError(
        "this object is no model",
        seen=type(model).__name__,
        remedy="give a path, a Keras model or a tf.Module",
    )


def is_keras_file(path: Path) -> bool:
    """Say whether a path names a file of Keras."""
    return path.suffix in SUFFIXES and path.is_file()


def is_tflite_file(path: Path) -> bool:
    """Say whether a path names a file of LiteRT."""
    return path.suffix == SUFFIX and path.is_file()


def check_path(path: Path) -> None:
    """Refuse what cannot be a model by its first bytes, without TensorFlow, whose import takes seconds."""
    remedy = "give a SavedModel directory, a .keras, an .h5 or a .tflite file"
    if not path.exists():
        if path.with_name(f"{path.name}.index").is_file():
            raise _checkpoint(path)
        raise UsageError("there is no such model", seen=path, remedy="check the path")
    if path.is_dir() and is_saved_model(path):
        graph = path / "saved_model.pb"
        if graph.is_file() and _head(graph, 0, 1) not in _FIRST_TAGS:
            raise NotAModelError("not a model: its saved_model.pb is no SavedModel", seen=path, remedy=remedy)
    elif path.is_file() and path.suffix == ".keras":
        if not zipfile.is_zipfile(path):
            raise NotAModelError("not a model: a .keras file is a zip archive", seen=path, remedy=remedy)
    elif path.is_file() and path.suffix in SUFFIXES:
        if not any(_head(path, offset, len(_HDF5)) == _HDF5 for offset in _HDF5_OFFSETS):
            raise NotAModelError("not a model: this is no HDF5 file", seen=path, remedy=remedy)
    elif is_tflite_file(path):
        with open_tflite(path) as file:
            check_tflite_file(file)
    else:
        raise _no_model(path, remedy)


def _no_model(path: Path, remedy: str) -> NotAModelError:
    """Return what to say about something that people take for a model."""
    if path.is_file():
        if path.name in FILES:
            return NotAModelError("a SavedModel is a folder", seen=path, remedy=f"give {path.parent}")
        return (
            _checkpoint(path)
            if path.suffix in (".ckpt", ".index")
            else NotAModelError("not a model", seen=path, remedy=remedy)
        )
    if not path.is_dir():
        return NotAModelError("not a model: neither a file nor a folder", seen=path, remedy=remedy)
    if (path / MANIFEST).is_file():
        return NotAModelError("this is a bundle: it is packed already", seen=path, remedy="give it to glowplug.load")
    versions = sorted((one for one in path.iterdir() if one.name.isdecimal() and is_saved_model(one)), key=_number)
    if versions:
        return NotAModelError("this is a folder of versions", seen=path, remedy=f"give one of them: {versions[-1]}")
    if (path / "checkpoint").is_file() or any(path.glob("*.index")):
        return _checkpoint(path)
    return NotAModelError("not a model", seen=path, remedy=remedy)


def _number(version: Path) -> int:
    return int(version.name)


def _checkpoint(path: Path) -> NotAModelError:
    return NotAModelError(
        "this is a checkpoint, which has weights and no graph",
        seen=path,
        remedy="build the model in Python, load the checkpoint into it, and pass it to glowplug.pack",
    )


def _head(path: Path, offset: int, size: int) -> bytes:
    try:
        with path.open("rb") as stream:
            stream.seek(offset)
            return stream.read(size)
    except OSError as error:
        seen = f"{path} ({error.strerror})"
        raise StorageError("this file cannot be read", seen=seen, remedy=refusals.remedy(error)) from error


def _from_path(path: Path, scratch: Path, *, unsafe_lambda: bool) -> Located:
    check_path(path)
    if path.is_dir():
        return Located(path.resolve(), SAVED_MODEL, path.name)
    target = scratch / "saved_model"
    export_keras(load_keras(path, unsafe_lambda=unsafe_lambda), target)
    return Located(target, f"Keras {path.suffix} file", path.name)


def _save_module(module: Any, target: Path, signatures: Mapping[str, Any] | None) -> None:
    import tensorflow as tf

    chosen = dict(signatures or _module_signatures(module))
    if not chosen:
        raise NotAModelError(
            "this tf.Module has nothing to call",
            seen=module.name,
            remedy="decorate a method with @tf.function(input_signature=[...]), or pass signatures={...}",
        )
    try:
        tf.saved_model.save(module, str(target), signatures=chosen)
    except GlowplugError:
        raise
    except Exception as error:  # TensorFlow raises errors of every kind for what it cannot save
        raise NotAModelError(
            "TensorFlow cannot save this module",
            seen=first_line(error),
            remedy="try `tf.saved_model.save` on it alone, and repair what it names",
        ) from error


def _module_signatures(module: Any) -> dict[str, Any]:
    """Return the methods that say what they take. `__call__`, or the only one, is `serving_default`."""
    found = {}
    for name in dir(type(module)):
        attribute = getattr(module, name, None) if not name.startswith("__") or name == "__call__" else None
        if getattr(attribute, "input_signature", None) is not None and hasattr(attribute, "get_concrete_function"):
            found[name] = attribute
    if len(found) == 1 or "__call__" in found:
        default = "__call__" if "__call__" in found else next(iter(found))
        found["serving_default"] = found.pop(default)
    return found
