"""Where the code of installed packages lies: folders, sources, shared libraries, found as Python finds them.

Editable installs, parts of namespaces, linked folders, single modules and zip files all come down to paths. Nothing is
imported to find them, and no module that loads itself when it is looked at is woken.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

_NO_CODE = frozenset({"__pycache__", "include"})  # bytecode is found by its source; headers are no code

Place = tuple[str, str]  # the name of a package or of a part of it, and its path


@dataclass(slots=True)
class CodeFiles:
    """The files of some packages, each with its place in its package, and the folders with the time of their change.

    The order is the same wherever the packages lie.
    """

    folders: dict[str, int] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    libraries: dict[str, str] = field(default_factory=dict)


def places(packages: Iterable[str]) -> list[Place]:
    """Return the folders, or the one file, of each package. What is not installed has none."""
    return sorted({place for name in packages for place in _places(name)})


def code_files(roots: Iterable[Place]) -> CodeFiles:
    """List the files of the packages at these places."""
    found = CodeFiles()
    visited: set[str] = set()
    waiting = list(reversed(list(roots)))
    while waiting:
        label, path = waiting.pop()
        if not os.path.isdir(path):
            found.sources[path] = label
            continue
        real = os.path.realpath(path)
        if real in visited:
            continue  # a link back
        visited.add(real)
        found.folders[path] = os.stat(path).st_mtime_ns  # before it is listed: what comes meanwhile is seen later
        for entry in sorted(_entries(path), key=lambda one: one.name, reverse=True):
            name = entry.name
            if name.endswith((".py", ".pyc")):
                found.sources[entry.path] = f"{label}/{name}"
            elif name.endswith(".so") or ".so." in name:
                found.libraries[entry.path] = f"{label}/{name}"
            elif name not in _NO_CODE and not name.startswith(".") and entry.is_dir():
                waiting.append((f"{label}/{name}", entry.path))
    return found


def loaded_modules(known: Container[str]) -> Iterator[tuple[str, str]]:
    """Yield the source of each loaded module that is not `known`, and where its bytecode would be."""
    for module in list(sys.modules.values()):
        try:
            names = object.__getattribute__(module, "__dict__")
        except AttributeError:
            continue
        source = names.get("__file__")
        if type(source) is str and source not in known and source.endswith((".py", ".pyc")):
            bytecode = names.get("__cached__")
            yield source, bytecode if type(bytecode) is str else ""


def _places(name: str) -> Iterator[Place]:
    for path in _locations(name):
        real = path
        while real not in ("", "/") and not os.path.exists(real):  # inside of a zip file
            real = os.path.dirname(real)
        if real == path or os.path.isfile(real):
            yield name, real
        if os.path.isdir(f"{real}.libs"):  # where wheels put the libraries that they bring
            yield name, f"{real}.libs"


def _locations(name: str) -> list[str]:
    names = _names(sys.modules.get(name))
    path, file = names.get("__path__"), names.get("__file__")
    if path is not None:
        return [str(one) for one in path]
    if type(file) is str:
        return [file]
    parent, _, last = name.rpartition(".")
    if parent:
        return [f"{one}/{last}" for one in _locations(parent) if os.path.isdir(f"{one}/{last}")]
    try:
        spec = names.get("__spec__") if name in sys.modules else find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return []
    if spec is None:
        return []
    if spec.submodule_search_locations is not None:
        return [str(one) for one in spec.submodule_search_locations]
    return [spec.origin] if spec.has_location and spec.origin else []


def _names(module: object) -> dict[str, Any]:
    try:
        found = object.__getattribute__(module, "__dict__")
    except AttributeError:
        return {}
    return found if type(found) is dict else {}


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return list(found)
    except OSError:
        return []
