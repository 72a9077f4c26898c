"""Reads warm-up requests that users have: `.npz`, `.json`, and TensorFlow Serving's `tf_serving_warmup_requests`."""

from __future__ import annotations

import base64
import io
import json
import pickle
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from numpy.typing import NDArray

from glowplug.bundle.warmup import Request
from glowplug.core.errors import NotAModelError, UsageError
from glowplug.core.manifest import Signature
from glowplug.loader.arguments import bind

if TYPE_CHECKING:
    from glowplug.convert.source.saved_model import SourceSignature

SERVING_FILE = Path("assets.extra") / "tf_serving_warmup_requests"
_DEFAULT = "serving_default"


def read_requests(path: Path, signatures: Mapping[str, SourceSignature] | Mapping[str, Signature]) -> list[Request]:
    """Return the requests of a file, checked against the signatures."""
    if not path.is_file():
        raise UsageError("there is no such warm-up file", seen=path, remedy="check the path")
    try:
        if path.suffix == ".npz":
            found = [(_name_for(inputs, signatures), inputs) for inputs in _from_npz(path)]
        elif path.suffix == ".json":
            found = list(_from_json(path))
        else:
            found = list(_from_serving(path))
    except (
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        OSError,
        zipfile.BadZipFile,
        pickle.PickleError,
    ) as error:
        raise NotAModelError(
            "the warm-up file cannot be read",
            seen=f"{path} ({error})",
            remedy="give an .npz, a .json or a tf_serving_warmup_requests file",
        ) from error
    return [_checked(name, inputs, signatures) for name, inputs in found]


def _checked(name: str, inputs: Any, signatures: Mapping[str, SourceSignature] | Mapping[str, Signature]) -> Request:
    if name not in signatures:
        raise UsageError(
            "a warm-up request names no signature of the model",
            seen=name,
            remedy=f"use one of {list(signatures)}",
        )
    signature = signatures[name]
    arrays = bind(name, signature, inputs, {})  # type: ignore[arg-type]
    return Request(name, dict(zip(signature.inputs, arrays, strict=True)))


def _name_for(inputs: Mapping[str, Any], signatures: Mapping[str, SourceSignature] | Mapping[str, Signature]) -> str:
    """Return the signature that a request without a name is for: the default, or one with inputs of these names."""
    if _DEFAULT in signatures:
        return _DEFAULT
    return next((name for name, one in signatures.items() if set(one.inputs) == set(inputs)), _DEFAULT)


def _from_npz(path: Path) -> Iterator[dict[str, Any]]:
    with zipfile.ZipFile(path) as archive:
        members = [name for name in archive.namelist() if name.endswith(".npy")]
        yield {name.removesuffix(".npy"): _read_npy(archive.read(name)) for name in members}


def _read_npy(data: bytes) -> NDArray[Any]:
    """Read an array; one of objects, as numpy saves texts in, only if nothing but texts and bytes is in it."""
    stream = io.BytesIO(data)
    try:
        return np.load(stream, allow_pickle=False)  # type: ignore[no-any-return]
    except ValueError:
        stream.seek(0)
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(stream)
        if not dtype.hasobject:
            raise
        array = _PlainUnpickler(stream).load()
        if not isinstance(array, np.ndarray) or array.shape != shape:
            raise ValueError("an array of objects is damaged") from None
        if not all(isinstance(item, str | bytes) for item in array.flat):
            raise ValueError("an array of objects holds something other than texts") from None
        return array


class _PlainUnpickler(pickle.Unpickler):
    """Makes numpy arrays of texts and nothing else: other names are refused before anything is called."""

    _ALLOWED = frozenset(
        (module, name)
        for module in ("numpy", "numpy.core.multiarray", "numpy._core.multiarray")
        for name in ("_reconstruct", "ndarray", "dtype")
    )

    def find_class(self, module: str, name: str) -> Any:
        """Return an allowed name."""
        if (module, name) not in self._ALLOWED:
            raise ValueError(f"an array of objects asks for {module}.{name}")
        return super().find_class(module, name)


def _from_json(path: Path) -> Iterator[tuple[str, Any]]:
    document = json.loads(path.read_text("utf-8"))
    for body in document if isinstance(document, list) else [document]:
        name = body.get("signature_name", _DEFAULT)
        if "instances" in body:
            rows = [_plain(row) for row in body["instances"]]
            columns = isinstance(rows[0], dict) if rows else False
            yield name, {key: [row[key] for row in rows] for key in rows[0]} if columns else rows
        else:
            yield name, _plain(body["inputs"])


def _plain(value: Any) -> Any:
    """Decode `{"b64": ...}` wherever it stands."""
    if isinstance(value, dict):
        if set(value) == {"b64"}:
            return base64.b64decode(value["b64"])
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _from_serving(path: Path) -> Iterator[tuple[str, Any]]:
    import tensorflow as tf

    log_type = _prediction_log()
    for data in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
        request = log_type.FromString(data).predict_log.request
        if request.inputs:
            yield (
                request.model_spec.signature_name or _DEFAULT,
                {k: _array(v) for k, v in request.inputs.items()},
            )


def _array(serialized: bytes) -> NDArray[Any]:
    from tensorflow.core.framework import tensor_pb2
    from tensorflow.python.framework import tensor_util

    array: NDArray[Any] = tensor_util.MakeNdarray(tensor_pb2.TensorProto.FromString(serialized))
    return array


def _prediction_log() -> Any:
    """Return the message class of TensorFlow Serving's `PredictionLog`, as far as it holds predict requests.

    Tensors are kept as bytes, which is how a message travels inside another.
    """
    text, data, message = 9, 12, 11  # TYPE_STRING, TYPE_BYTES, TYPE_MESSAGE
    file = descriptor_pb2.FileDescriptorProto(name="glowplug/warmup.proto", package="glowplug.warmup", syntax="proto3")

    def add(name: str, *fields: tuple[str, int, int, str], parent: Any = None) -> Any:
        made = (parent.nested_type if parent is not None else file.message_type).add(name=name)
        for label, number, kind, of in fields:
            made.field.add(name=label, number=number, type=kind, label=1)
            if of:
                made.field[-1].type_name = of
        return made

    add("ModelSpec", ("name", 1, text, ""), ("signature_name", 3, text, ""))
    request = add("PredictRequest", ("model_spec", 1, message, ".glowplug.warmup.ModelSpec"))
    entry = add("InputsEntry", ("key", 1, text, ""), ("value", 2, data, ""), parent=request)
    entry.options.map_entry = True
    request.field.add(
        name="inputs",
        number=2,
        type=message,
        type_name=".glowplug.warmup.PredictRequest.InputsEntry",
        label=3,
    )
    add("PredictLog", ("request", 1, message, ".glowplug.warmup.PredictRequest"))
    add("PredictionLog", ("predict_log", 6, message, ".glowplug.warmup.PredictLog"))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("glowplug.warmup.PredictionLog"))
