"""Keras models, in files and live, of Keras 3 and of Keras 2 (`tf_keras`): loaded and exported as a SavedModel.

Keras raises errors of every kind for every cause; here each cause gets its own text and remedy.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import zipfile
from pathlib import Path
from typing import Any

from glowplug.core.errors import ModelError, NotAModelError, UnsupportedModelError

SUFFIXES = (".keras", ".h5", ".hdf5")
_CUSTOM = re.compile(r"Could not locate (?:class|function) '([^']+)'|Unknown [a-z ]+: '?([\w>.]+)'?")
_LAMBDA = re.compile(r"Lambda` layer|arbitrary code|unsafe_deserialization|marshal")


def load_keras(path: Path, *, unsafe_lambda: bool = False) -> Any:
    """Return the model of a `.keras` or `.h5` file, through the Keras that wrote it where that is installed."""
    version = keras_version(path)
    legacy = version.startswith("2.") or os.environ.get("TF_USE_LEGACY_KERAS") in ("1", "true", "True")
    has_legacy = importlib.util.find_spec("tf_keras") is not None
    if legacy and path.suffix == ".keras" and version.startswith("2.") and not has_legacy:
        raise UnsupportedModelError(
            "this file is of Keras 2", seen=f"{path} (Keras {version})", remedy="run `pip install tf_keras`"
        )
    if legacy and has_legacy and not version.startswith("3."):
        import tf_keras as keras
    else:
        import keras
    try:
        return keras.models.load_model(str(path), compile=False, safe_mode=not unsafe_lambda)
    except Exception as error:  # Keras raises errors of every kind for a file that it cannot read
        raise _explained(path, error, old=version.startswith("2.") and not has_legacy) from error


def keras_version(path: Path) -> str:
    """Return the version of the Keras that wrote a file, `""` where it does not say; refuse what holds no model."""
    if path.suffix == ".keras":
        try:
            with zipfile.ZipFile(path) as archive:
                if "config.json" not in archive.namelist():
                    raise _weights_only(path)
                metadata = json.loads(archive.read("metadata.json")) if "metadata.json" in archive.namelist() else {}
                return str(metadata.get("keras_version", ""))
        except (zipfile.BadZipFile, ValueError, OSError) as error:
            raise _damaged(path, error) from error
    import h5py

    try:
        with h5py.File(path, "r") as file:
            if "model_config" not in file.attrs:
                raise _weights_only(path)
            version = file.attrs.get("keras_version", "")
    except OSError as error:
        raise _damaged(path, error) from error
    return version.decode() if isinstance(version, bytes) else str(version)


def export_keras(model: Any, target: Path) -> None:
    """Write a live model as a SavedModel that can be called."""
    try:
        if not is_legacy(model):
            model.export(str(target), verbose=False)
            return
        serving = getattr(model, "serving", None)  # of Hugging Face: it says what the model takes
        signatures = serving if getattr(serving, "input_signature", None) is not None else None
        _save_legacy(model, target, signatures)
    except Exception as error:  # as above
        raise NotAModelError(
            "Keras cannot export this model",
            seen=f"{model.name} ({first_line(error)})",
            remedy="build it first: call it once on an input",
        ) from error


def _save_legacy(model: Any, target: Path, signatures: Any) -> None:
    """Save a model of Keras 2. That traces each layer by itself, and for training too, which some do not stand."""
    import tensorflow as tf

    try:
        tf.saved_model.save(model, str(target), signatures=signatures)
    except Exception:
        if signatures is not None or not hasattr(model, "export"):
            raise
        shutil.rmtree(target, ignore_errors=True)
        model.export(str(target))  # traces the one call that a bundle answers


def is_keras_model(model: Any) -> bool:
    """Say whether an object is a model of Keras 3 or Keras 2."""
    return hasattr(model, "count_params") and (hasattr(model, "export") or is_legacy(model))


def is_legacy(model: Any) -> bool:
    """Say whether an object is of Keras 2."""
    return any(kind.__module__.partition(".")[0] == "tf_keras" for kind in type(model).__mro__)


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text, of a length that can be read."""
    lines = (str(error) or type(error).__name__).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__


def _explained(path: Path, error: Exception, *, old: bool) -> ModelError:
    text = str(error)
    if _LAMBDA.search(text):
        return UnsupportedModelError(
            "this file holds a Lambda layer, whose Python code would run",
            seen=path,
            remedy="if you trust it as you would a program, pass --unsafe-lambda (unsafe_lambda=True in Python)",
        )
    custom = _CUSTOM.search(text)
    if custom:
        return UnsupportedModelError(
            "this file needs a class that is not here",
            seen=f"{(custom[1] or custom[2]).rpartition('>')[2]} ({path})",
            remedy="load it in Python with custom_objects={...}, and pass the model to glowplug.pack",
        )
    if old:
        return UnsupportedModelError(
            "this file is of Keras 2, and Keras 3 cannot load it",
            seen=f"{path} ({first_line(error)})",
            remedy="run `pip install tf_keras`",
        )
    if isinstance(error, OSError | KeyError | zipfile.BadZipFile):
        return _damaged(path, error)
    return NotAModelError(
        "Keras cannot load this file",
        seen=f"{path} ({first_line(error)})",
        remedy="load it in Python, and pass the model to glowplug.pack",
    )


def _damaged(path: Path, error: Exception) -> NotAModelError:
    return NotAModelError(
        "this file is damaged", seen=f"{path} ({first_line(error)})", remedy="copy or save the model again"
    )


def _weights_only(path: Path) -> NotAModelError:
    return NotAModelError(
        "this file holds weights and no model",
        seen=path,
        remedy="build the model in Python, load the weights into it, and pass it to glowplug.pack",
    )
