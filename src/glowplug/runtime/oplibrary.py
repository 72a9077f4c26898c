"""Libraries of custom operations, loaded from installed packages by name."""

from __future__ import annotations

import ctypes
import importlib.util
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

from glowplug.core.errors import LibraryNotFoundError, TensorFlowError, UsageError
from glowplug.core.protobuf_wire import read_varint

from .library import open_library, show_to_op_libraries
from .status import checked

_lock = threading.Lock()
_loaded: dict[str, frozenset[str]] = {}


def load_op_library(package: str) -> frozenset[str]:
    """Load every library of custom operations in an installed package and return the operations' names.

    The package is found but not imported. Loading it again does nothing.
    """
    with _lock:
        if package not in _loaded:
            _loaded[package] = _load_all(_libraries(package))
        return _loaded[package]


def custom_ops(packages: Iterable[str]) -> frozenset[str]:
    """Load the libraries of several packages and return all their operations' names."""
    return frozenset[str]().union(*(load_op_library(package) for package in packages))


def _libraries(package: str) -> list[Path]:
    if not all(part.isidentifier() for part in package.split(".")):
        raise UsageError(
            "an operation library is named by its package",
            seen=package,
            remedy="give a name like tensorflow_text",
        )
    spec = importlib.util.find_spec(package)
    locations = (spec.submodule_search_locations or ()) if spec else ()
    found = [path for location in locations for path in sorted(Path(location).rglob("*.so")) if _registers_ops(path)]
    if not found:
        raise LibraryNotFoundError(
            "no operation library is installed under this name",
            seen=package,
            remedy=f"run `pip install {package}`",
        )
    return found


def _registers_ops(path: Path) -> bool:
    """Python extension modules are not operation libraries; those link to the interpreter's init function."""
    init = f"PyInit_{path.name.partition('.')[0]}".encode()
    return init not in path.read_bytes()


def _load_all(paths: list[Path]) -> frozenset[str]:
    """Load the libraries that can be loaded; packages carry others beside them. Raise if there is none."""
    show_to_op_libraries()
    operations: set[str] = set()
    failure: TensorFlowError | None = None
    for path in paths:
        try:
            operations |= _load(path)
        except TensorFlowError as error:
            failure = error
    if failure is not None and not operations:
        raise failure
    return frozenset(operations)


def _load(path: Path) -> frozenset[str]:
    library = open_library()
    with checked(library, f"TensorFlow cannot load {path.name}") as status:
        handle = library.blocking.TF_LoadLibrary(str(path).encode(), status)
    listed = library.api.TF_GetOpList(handle)
    return frozenset(_op_names(ctypes.string_at(listed.data, listed.length) if listed.length else b""))


def _op_names(data: bytes) -> list[str]:
    """Read the names out of a serialized `OpList`: field 1 is an operation, its field 1 the name."""
    names = []
    for operation in _fields(data):
        names.append(next(_fields(operation)).decode())
    return names


def _fields(data: bytes) -> Iterator[bytes]:
    """Yield the payloads of the length-delimited fields numbered 1."""
    place = 0
    while place < len(data):
        tag, place = read_varint(data, place, len(data))
        length, place = read_varint(data, place, len(data))
        if tag >> 3 == 1:
            yield data[place : place + length]
        place += length
