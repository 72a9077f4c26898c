"""Tells when a standby is older than the files it was built from. Runs in the standby.

The kernel reports changes in the directories of everything that was imported and of `sys.path` (inotify), so that a
request costs one poll; a report makes every file be looked at again. Where there is no inotify, each request looks.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Container, Iterable
from types import ModuleType

_NONBLOCK_CLOEXEC = os.O_NONBLOCK | os.O_CLOEXEC
_CHANGES = 0x2 | 0x8 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800  # modify, close_write, moved, create, delete, self


class Freshness:
    """What the files looked like when they were imported."""

    def __init__(self, modules: Iterable[ModuleType]) -> None:
        files = {_source(module) for module in modules}
        self._files = {path: stamp for path in files if path and (stamp := _stamp(path))}
        self._installed = {path: _stamp(path) for path in sys.path if _is_site(path)}
        self._names = {module.__name__.partition(".")[0] for module in modules}
        self._others = [path for path in sys.path if not _is_site(path) and os.path.isdir(path)]
        self._shadows = {path: self._hides(path) for path in self._others}
        self._notices = _watch({os.path.dirname(path) for path in self._files} | set(sys.path))

    def problem(self) -> str | None:
        """Return what has changed since, or None."""
        if self._notices is not None and not self._noticed():
            return None
        for path, stamp in self._installed.items():
            if _stamp(path) != stamp:
                return f"the packages in {path} have changed"
        for path, stamp in self._files.items():
            if _stamp(path) != stamp:
                return f"{path} has changed"
        for path, before in self._shadows.items():
            for name in self._hides(path) - before:
                return f"{name} in {path} now hides what was imported"
        return None

    def close(self) -> None:
        """Give the kernel's notices up. Runs in a child, too."""
        if self._notices is not None:
            os.close(self._notices)
            self._notices = None

    def _noticed(self) -> bool:
        assert self._notices is not None
        seen = False
        while True:
            try:
                seen = bool(os.read(self._notices, 1 << 16)) or seen
            except BlockingIOError:
                return seen

    def _hides(self, path: str) -> set[str]:
        return hiding(path, self._names)


def hiding(directory: str, *known: Container[str]) -> set[str]:
    """Return the top-level modules of those known that a file or package in `directory` would be found before."""
    try:
        entries = os.listdir(directory)
    except OSError:
        return set()
    return {
        name
        for entry in entries
        if any((name := entry.partition(".")[0]) in names for names in known) and _is_module(directory, entry)
    }


def _is_module(directory: str, entry: str) -> bool:
    """Tell whether the import system would stop at this entry; it passes by folders without an __init__.py."""
    if "." in entry:
        return entry.endswith((".py", ".pyc", ".so"))
    return os.path.isfile(os.path.join(directory, entry, "__init__.py"))


def _source(module: ModuleType) -> str | None:
    path = getattr(module, "__file__", None)
    return path if isinstance(path, str) else None


def _is_site(path: str) -> bool:
    return os.path.basename(path) in ("site-packages", "dist-packages")


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _watch(directories: Iterable[str]) -> int | None:
    library = ctypes.CDLL(None, use_errno=True)
    descriptor: int = library.inotify_init1(_NONBLOCK_CLOEXEC)
    if descriptor < 0:
        return None
    for path in directories:
        if os.path.isdir(path) and library.inotify_add_watch(descriptor, os.fsencode(path), _CHANGES) < 0:
            os.close(descriptor)  # too many watches: look at each request instead
            return None
    return descriptor
