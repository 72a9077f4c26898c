"""Finds the installed packages that bring an operation, to name them in a message. None of them is loaded."""

from __future__ import annotations

import importlib.metadata
import mmap
import re
from pathlib import Path

_MAKERS = re.compile(r"(tensorflow|tf[-_]|keras)", re.IGNORECASE)  # who builds against TensorFlow says so
_STOCK = frozenset({"tensorflow", "tensorflow_cpu", "tensorflow_intel", "keras", "tensorboard"})


def packages_with(op: str) -> list[str]:
    """Return the packages, as one imports them, with a library that has the operation's name in it."""
    found = set()
    for distribution in importlib.metadata.distributions():
        name = (distribution.metadata["Name"] or "").replace("-", "_").lower()
        if name in _STOCK or not (_MAKERS.search(name) or _needs_tensorflow(distribution)):
            continue
        for file in distribution.files or ():
            if file.suffix == ".so" and _contains(Path(str(distribution.locate_file(file))), op.encode()):
                found.add(file.parts[0])
    return sorted(found)


def _needs_tensorflow(distribution: importlib.metadata.Distribution) -> bool:
    return any(re.match(r"tensorflow(-cpu)?\b", requirement) for requirement in distribution.requires or ())


def _contains(path: Path, text: bytes) -> bool:
    try:
        with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return data.find(text) >= 0
    except (OSError, ValueError):  # unreadable or empty
        return False
