"""A plain `.tflite` file behind the same face as a bundle: LiteRT's interpreter, which takes whatever LiteRT does."""

from __future__ import annotations

from collections.abc import Mapping
from io import FileIO
from pathlib import Path

from glowplug.bundle.graphscan import byte_fields
from glowplug.bundle.tflite.model import TfliteModel, check_tflite_file
from glowplug.core.disk.regular_files import open_regular
from glowplug.core.errors import GraphMalformedError, StorageError
from glowplug.core.manifest import LiteRTSettings, Port, Signature

from .litert import LiteRTCalls
from .litert_interfaces import installed_release

_INPUTS, _OUTPUTS, _METHOD = 1, 2, 3  # of TensorFlow's SignatureDef
_KEY, _VALUE, _TENSOR_NAME = 1, 2, 1  # of an entry of a map, and of a TensorInfo


class TfliteFile(LiteRTCalls):
    """A loaded file. Run it like any engine of the loader."""

    def __init__(self, path: Path, threads: int = 0) -> None:
        installed_release()
        file = open_tflite(path)
        try:
            model = check_tflite_file(file)
            settings = LiteRTSettings("interpreter", any_shape=True)
            super().__init__(file, model, signatures_of(model), settings, threads)
        except BaseException:
            file.close()
            raise


def open_tflite(path: Path) -> FileIO:
    """Open an ordinary file."""
    try:
        return FileIO(open_regular(path))
    except OSError as error:
        raise StorageError("the model cannot be opened", seen=f"{path} ({error.strerror})") from error


def signatures_of(model: TfliteModel) -> Mapping[str, Signature]:
    """Return what can be called in a file: as it says itself, in the form of today or in the one of TensorFlow 2.3."""
    if model.declared or not model.legacy:
        return model.signatures
    from flatbuffers import flexbuffers

    (main,) = model.signatures.values()
    tensors = {**main.inputs, **main.outputs}
    try:
        entries = flexbuffers.GetRoot(bytearray(model.legacy)).AsMap
        found = {
            str(key.AsKey): _signature(bytes(value.AsStringBytes), tensors)
            for key, value in zip(entries.Keys, entries.Values, strict=True)
        }
    except (ValueError, IndexError, KeyError, TypeError, AttributeError, GraphMalformedError):
        return model.signatures  # whatever it is: without it the file is called by the names of its tensors
    return found or model.signatures


def _signature(data: bytes, tensors: Mapping[str, Port]) -> Signature:
    sides: dict[int, dict[str, Port]] = {_INPUTS: {}, _OUTPUTS: {}}
    method = ""
    for number, start, end in byte_fields(data, 0, len(data)):
        if number in sides:
            entry = {field: data[s:e] for field, s, e in byte_fields(data, start, end)}
            info = {field: entry[_VALUE][s:e] for field, s, e in byte_fields(entry[_VALUE], 0, len(entry[_VALUE]))}
            name = info[_TENSOR_NAME].decode()
            sides[number][entry[_KEY].decode()] = tensors.get(name) or tensors[name.removesuffix(":0")]
        elif number == _METHOD:
            method = data[start:end].decode()
    return Signature(dict(sorted(sides[_INPUTS].items())), dict(sorted(sides[_OUTPUTS].items())), method=method)
