"""Finds and opens TensorFlow's C library, which every TensorFlow wheel carries, without importing `tensorflow`.

Opening it starts no thread, so a process may still fork afterwards; the first graph or session ends that (see
`graph` and `session`). Nothing here runs at import time.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from glowplug.core.errors import LibraryNotFoundError, LibraryVersionError, SymbolMissingError
from glowplug.core.notices import held_back

from . import symbols

OLDEST, NEWEST = (2, 16), (2, 22)
_SUPPORTED = f"TensorFlow {OLDEST[0]}.{OLDEST[1]} to {NEWEST[0]}.{NEWEST[1]}"

_FILE_NAMES = {
    "linux": ("libtensorflow_framework.so.2", "libtensorflow_cc.so.2"),
    "darwin": ("libtensorflow_framework.2.dylib", "libtensorflow_cc.2.dylib"),
}
_SHOWS_ITS_SYMBOLS = "python/pywrap_dlopen_global_flags.py"  # where this is, `import tensorflow` uses RTLD_GLOBAL
WARNING, ERROR = 1, 2
_LOGGER_RELEASES = ("20250814", "20250512", "20250127", "20240722", "20240116", "20230802")


@dataclass(frozen=True, slots=True)
class Library:
    """The opened library. `api` keeps the interpreter lock (for calls that return at once), `blocking` releases it."""

    directory: Path
    version: str
    api: Any
    blocking: Any


_lock = threading.Lock()
_opened: list[Library] = []  # at most one


def find_directory() -> Path:
    """Return the folder of the installed TensorFlow wheel, or raise `LibraryNotFoundError`."""
    spec = importlib.util.find_spec("tensorflow")
    for location in (spec.submodule_search_locations or ()) if spec else ():
        directory = Path(location)
        if all((directory / name).is_file() for name in _file_names()):
            return directory
    if spec is None:
        raise LibraryNotFoundError(
            "TensorFlow is not installed for this interpreter",
            seen=sys.executable,
            remedy="run `pip install 'glowplug[cpu]'`, or use the interpreter that has TensorFlow",
        )
    raise LibraryNotFoundError(
        "the installed TensorFlow has no C library",
        seen=f"{spec.origin} without {' and '.join(_file_names())}",
        remedy=f"reinstall a wheel of {_SUPPORTED}",
    )


def is_installed() -> bool:
    """Say whether there is a TensorFlow to open."""
    return importlib.util.find_spec("tensorflow") is not None


def open_library() -> Library:
    """Open the library once for this process (0.2 s) and return it. Other threads run meanwhile."""
    if not _opened:
        with _lock:
            if not _opened:
                _opened.append(_open(find_directory()))
    return _opened[0]


def set_log_level(level: int, framework: Any = None) -> None:
    """Keep messages below `level` off stderr, whatever the environment says.

    Newer releases read TF_CPP_MIN_LOG_LEVEL only when Python imports TensorFlow. The logger's function has its own
    release in its name; an unknown one is a little noisier.
    """
    library = framework or open_library().blocking
    for release in _LOGGER_RELEASES:
        function = getattr(library, f"_ZN4absl12lts_{release}14SetMinLogLevelENS0_18LogSeverityAtLeastE", None)
        if function is not None:
            function(level)
            return


def show_to_op_libraries() -> None:
    """Let libraries that are opened from now on see TensorFlow's symbols, as `import tensorflow` does.

    A library of custom operations carries copies of protobuf and Abseil; without this it would use its own, whose hash
    tables have another seed than TensorFlow's: it looks for an attribute that is there, and aborts the process. Others
    see the symbols too, OpenSSL's among them, so Python's own users of those are bound first.
    """
    library = open_library()
    if sys.platform != "linux" or not (library.directory / _SHOWS_ITS_SYMBOLS).is_file():
        return
    import hashlib  # noqa: F401

    with contextlib.suppress(ImportError):  # an interpreter may have been built without it
        import ssl  # noqa: F401
    _dlopen(str(library.directory / _file_names()[0]), os.RTLD_LAZY | os.RTLD_GLOBAL | os.RTLD_NOLOAD)


def is_open() -> bool:
    """Say whether this process has the library open already."""
    return bool(_opened)


def _open(directory: Path) -> Library:
    framework, complete = (str(directory / name) for name in _file_names())
    with held_back(threads=2):  # this one may be a thread that overlaps with the caller's
        first = _dlopen(framework)
    level = os.environ.get("TF_CPP_MIN_LOG_LEVEL", "")
    set_log_level(int(level) if level.isdigit() else WARNING, ctypes.CDLL(framework, handle=first))
    handle = _dlopen(complete)
    blocking, api = ctypes.CDLL(complete, handle=handle), ctypes.PyDLL(complete, handle=handle)
    version = _version(blocking)
    for name, prototype in symbols.PROTOTYPES.items():
        for library in (blocking, api):
            try:
                function = getattr(library, name)
            except AttributeError:
                raise SymbolMissingError(
                    "TensorFlow's C library lacks a function",
                    seen=f"{name} in TensorFlow {version}",
                    remedy=f"install {_SUPPORTED}",
                ) from None
            function.restype, function.argtypes = prototype
    return Library(directory, version, api, blocking)


def _file_names() -> tuple[str, str]:
    try:
        return _FILE_NAMES[sys.platform]
    except KeyError:
        raise LibraryNotFoundError(
            "this operating system is not supported", seen=sys.platform, remedy="use Linux or macOS"
        ) from None


def _dlopen(path: str, mode: int = os.RTLD_LAZY | os.RTLD_LOCAL) -> int:
    """Call `dlopen` itself.

    `ctypes.CDLL(path)` adds RTLD_NOW, which binds 156,000 functions that a run never calls (0.1 s), and keeps the
    interpreter lock for the whole time. RTLD_GLOBAL is only for who needs it: the library exports its own copy of
    OpenSSL's functions, and a later `import hashlib` or `import ssl` would bind to them and crash.
    """
    process = ctypes.CDLL(None)
    process.dlopen.restype, process.dlopen.argtypes = ctypes.c_void_p, [ctypes.c_char_p, ctypes.c_int]
    handle: int | None = process.dlopen(path.encode(), mode)
    if handle is None:
        process.dlerror.restype = ctypes.c_char_p
        message = (process.dlerror() or b"unknown error").decode(errors="replace")
        raise LibraryNotFoundError(
            "TensorFlow's C library cannot be opened",
            seen=message,
            remedy=f"reinstall a wheel of {_SUPPORTED}",
        )
    return handle


def _version(library: ctypes.CDLL) -> str:
    try:
        function = library.TF_Version
    except AttributeError:
        raise SymbolMissingError("the library does not tell its version", seen="TF_Version") from None
    function.restype = ctypes.c_char_p
    version: str = function().decode()
    if not OLDEST <= _release(version) <= NEWEST:
        raise LibraryVersionError(
            "this TensorFlow is outside the supported range", seen=version, remedy=f"install {_SUPPORTED}"
        )
    return version


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdigit() else 0 for part in version.split(".")[:2])
