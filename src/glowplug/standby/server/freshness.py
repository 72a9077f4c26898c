"""Tells when a standby is older than the files it was built from. Runs in the standby, before each fork.

The kernel reports changes (inotify) of every file that was imported or mapped, by whatever name it is written to, and
of every directory between it and the entry of `sys.path` it was found by. So a request costs one read, and a look at
the entries themselves, since a link on the way to one may point elsewhere by now. A report makes every file be looked
at again. Where the kernel cannot report (another machine may write there, or there are too many files), each request
looks.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterable
from types import ModuleType

from glowplug.standby.shadowing import hiding

Stamp = tuple[int, ...] | None
_NONBLOCK_CLOEXEC = os.O_NONBLOCK | os.O_CLOEXEC
_CHANGES = 0x2 | 0x4 | 0x8 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800  # modify, attributes, moved, create, delete
_LOCAL = frozenset(
    (
        "ext2",
        "ext3",
        "ext4",
        "xfs",
        "btrfs",
        "f2fs",
        "tmpfs",
        "ramfs",
        "overlay",
        "zfs",
        "bcachefs",
        "squashfs",
        "erofs",
    )
)
_LAX_NS = 20_000_000  # the clock that files are stamped by is this coarse


class Freshness:
    """What the files looked like when they were imported, which was not before `began_ns` of the real-time clock."""

    def __init__(self, modules: Iterable[ModuleType], began_ns: int) -> None:
        modules = list(modules)
        files = {path for module in modules if (path := _file(module))} | _mapped() | _path_files()
        self._files = {path: _stamp(path) for path in files}
        self._began_ns = began_ns
        self._problem: str | None = None
        self._roots = {path: _stamp(path) for path in sys.path if path}
        self._names = {module.__name__.partition(".")[0] for module in modules}
        self._shadows = {path: hiding(path, self._names) for path in self._roots if not _is_site(path)}
        self._entries = {path: _modules_in(path) for path in self._shadows}
        self._reports = _watch([*self._files, *_directories(self._files, self._roots), *self._roots])

    def problem(self) -> str | None:
        """Return what has changed since, or None. What was once old stays old."""
        if self._problem is None:
            self._problem = self._look()
        return self._problem

    def _look(self) -> str | None:
        for path, stamp in self._roots.items():
            if _place(_stamp(path)) != _place(stamp):
                return f"{path} is another directory now"
        if self._reports is not None and not self._reported():
            return None
        return self._changed()

    def newborn_problem(self) -> str | None:
        """Return what changed while it was being imported, or None."""
        for path, stamp in self._files.items():
            if stamp is not None and stamp[1] > self._began_ns - _LAX_NS:
                return f"{path} has changed meanwhile"
        return self._changed()

    def close(self) -> None:
        """Give the kernel's reports up. Runs in a child, too."""
        if self._reports is not None:
            os.close(self._reports)
            self._reports = None

    def _changed(self) -> str | None:
        for path, stamp in self._files.items():
            if _stamp(path) != stamp:
                return f"{path} has changed"
        for path, stamp in self._roots.items():
            if _is_site(path) and _stamp(path) != stamp:
                return f"the packages in {path} have changed"
        for path, before in self._shadows.items():
            for name in hiding(path, self._names) - before:
                return f"{name} in {path} now hides what was imported"
            for name in _modules_in(path) ^ self._entries[path]:
                return f"{name} came or went in {path}"
        return None

    def _reported(self) -> bool:
        assert self._reports is not None
        seen = False
        while True:
            try:
                seen = bool(os.read(self._reports, 1 << 16)) or seen
            except BlockingIOError:
                return seen


def _file(module: ModuleType) -> str | None:
    """Return the file that a module came from; of an archive, the archive."""
    path = getattr(module, "__file__", None)
    if not isinstance(path, str) or not os.path.isabs(path):
        return None
    while not os.path.isfile(path):
        parent = os.path.dirname(path)
        if parent == path or os.path.isdir(path):
            return None
        path = parent
    return path


def _mapped() -> set[str]:
    """Return the files whose pages this process has mapped: libraries that no module stands for."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as stream:
        paths = {line.split(None, 5)[5].rstrip("\n") for line in stream if line.count("/")}
    return {path for path in paths if path.startswith("/") and os.path.isfile(path)}


def _path_files() -> set[str]:
    """Return the files by which site directories add to `sys.path`, or run code, when Python starts."""
    found = set()
    for directory in filter(_is_site, sys.path):
        try:
            found |= {os.path.join(directory, entry) for entry in os.listdir(directory) if entry.endswith(".pth")}
        except OSError:
            continue
    return found


def _modules_in(directory: str) -> set[str]:
    """Return the names that an import would find directly in a directory."""
    try:
        entries = os.listdir(directory)
    except OSError:
        return set()
    return {name for entry in entries if (name := entry.partition(".")[0]).isidentifier() and name != "__pycache__"}


def _directories(files: Iterable[str], roots: Iterable[str]) -> set[str]:
    """Return each directory from a root down to a file."""
    found: set[str] = set()
    ends = set(roots)
    for path in files:
        directory = os.path.dirname(path)
        while directory not in found:
            found.add(directory)
            parent = os.path.dirname(directory)
            if directory in ends or parent == directory or not any(directory.startswith(f"{end}/") for end in ends):
                break
            directory = parent
    return found


def _is_site(path: str) -> bool:
    return os.path.basename(path) in ("site-packages", "dist-packages")


def _stamp(path: str) -> Stamp:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_dev


def _place(stamp: Stamp) -> Stamp:
    return stamp and stamp[3:]


def _watch(paths: Iterable[str]) -> int | None:
    """Return a descriptor that has something to read once one of the paths changes; None where that is not certain."""
    local = _local_devices()
    library = ctypes.CDLL(None, use_errno=True)
    descriptor: int = library.inotify_init1(_NONBLOCK_CLOEXEC)
    if descriptor < 0:
        return None
    for path in paths:
        stamp = _stamp(path)
        if stamp is None:
            continue
        if stamp[4] not in local or library.inotify_add_watch(descriptor, os.fsencode(path), _CHANGES) < 0:
            os.close(descriptor)
            return None
    return descriptor


def _local_devices() -> set[int]:
    """Return the numbers of the devices that only this kernel writes to."""
    found = set()
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as stream:
        for line in stream:
            fields, _, rest = line.partition(" - ")
            if rest.split(" ", 1)[0] in _LOCAL:
                major, _, minor = fields.split()[2].partition(":")
                found.add(os.makedev(int(major), int(minor)))
    return found
