"""What stock code reads outside the process for a program, while a step is traced: files, folders, where it runs.

What a step calls by name may be known, and what its arguments lead to not: a vocabulary in a file, the classes of a
folder. TensorFlow's conversion of code, imports and what Python itself does for a traceback read files that count
elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import PurePath
from types import CodeType

_READS = re.compile(
    r"<built-in method (io\.open\w*|posix\.(?!fspath\b|getpid\b|cpu_count\b|urandom\b)\w+|_socket\.\w+|"
    r"tensorflow\.python\.lib\.io\._pywrap\w+\.\w+)>"
)
_MODULES = frozenset({"genericpath", "glob", "pathlib", "shutil", "socket", "tarfile", "tempfile", "urllib", "zipfile"})
_OF_OS = frozenset({"abspath", "expanduser", "expandvars", "fwalk", "ismount", "lexists", "realpath", "walk"})
_LIBRARIES = ("keras.", "numpy.", "tensorflow.", "h5py.")
_CONVERSION = "tensorflow.python.autograph."  # it reads sources, which are in the key, and writes what it makes of them


def reads_outside(ran: CodeType, called: Iterable[CodeType | str], module_of: Callable[[str], str]) -> str:
    """Return what code of a library's calls that reads outside, or nothing. `module_of` tells a module by its file."""
    module = f"{module_of(ran.co_filename)}."
    if not module.startswith(_LIBRARIES) or module.startswith(_CONVERSION) or ran.co_name == "<module>":
        return ""
    return next((name for name in map(_outside, called) if name), "")


def _outside(called: CodeType | str) -> str:
    if isinstance(called, str):
        return called.strip("<>") if _READS.fullmatch(called) else ""
    place = PurePath(called.co_filename.removeprefix("<frozen ").removesuffix(">"))
    if place.parent.name in _MODULES or place.stem in _MODULES:
        return f"{place.stem}.{called.co_name}"
    return f"{place.stem}.{called.co_name}" if place.stem in ("os", "posixpath") and called.co_name in _OF_OS else ""
