"""One stamp of the code of installed packages: what stands on the disk, whatever version it calls itself.

Sources count by their content, so equal installations have equal stamps wherever they are. A table in the cache folder
has the stamp together with sizes, times and numbers of files; as long as those are the same, so is the stamp. They are
compared for the shared libraries, and for the source, the bytecode and the folder of each module that was ever seen
loaded: what nothing loads changes nothing, until something loads it.

Shared libraries are too large to be read at a first start, and the bytecode of a module comes into being when it is
first imported. Both count as what they were when they were first seen; one that has changed since, beside a source that
has not, counts by its content.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import sys
import time
import zlib
from array import array
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from . import cache_files
from .package_files import Place, code_files, loaded_modules, places

_PART = "installed"
_VERSION = 1
_SETTLED_NS = 2_000_000_000  # what changed less than this ago may change again within one tick of the file's clock
_HEAD_BYTES = 4096  # of a library: its header, and with most linkers a digest of the rest
_PYC_HEADER_BYTES = 16  # among them the time of the source
_MAX_TABLE_BYTES = 1 << 26

_CHUNK_BYTES = 1 << 20

_Row = tuple[object, ...]
Look = tuple[int, int, int, int]  # of a file as it was seen: size, time of modification, time of change, number
_ABSENT: Look = (-1, 0, 0, 0)
_UNSETTLED: Look = (-2, 0, 0, 0)


_kept_here: dict[str, bytes] = {}  # tables for which there is no place: this process need not read all files twice


class Installed(NamedTuple):
    """The stamp of each package. `read_again` files looked new or changed; what really had, did so last at `newest_ns`.

    A process that finds a file that changed after it began does not know which of the two it has loaded.
    """

    digests: dict[str, str]
    read_again: int = 0
    newest_ns: int = 0


class _Seen(NamedTuple):
    """A file: how it looked, the digest it had then, and for a follower what it was at first beside which source."""

    look: Look
    digest: str
    first: str = ""
    source: str = ""


class _Watch(NamedTuple):
    """What must look the same for the stamp to be the same: `loaded` modules are found by their sources."""

    digests: dict[str, str]
    loaded: dict[str, str]
    folders: list[str]
    libraries: list[str]
    looks: bytes


def read_installed(packages: Iterable[str]) -> Installed:
    """Return the stamp of these packages, loaded or not. A dotted name is a part of a namespace."""
    roots = places(packages)
    identity = (_VERSION, sys.implementation.cache_tag, roots)
    name = hashlib.sha256(repr(identity).encode("utf-8", "surrogateescape")).hexdigest()[:24]
    watch, rows = _read_table(name)
    new = _newly_loaded(watch, roots)
    if watch is not None and not new and _looks(watch) == watch.looks:
        return Installed(watch.digests)
    again = _Pass(roots, {**(watch.loaded if watch is not None else {}), **new}, marshal.loads(rows))
    body = again.table()
    if not cache_files.write(_PART, name, [zlib.crc32(body).to_bytes(4, "little"), body]):
        _kept_here[name] = body
    return Installed(again.digests, again.read_again, again.newest_ns)


def process_began_ns() -> int:
    """Return when this process began, on the clock that files have: within its first hundredth of a second."""
    with open("/proc/self/stat", "rb") as stream:
        ticks = int(stream.read().rpartition(b")")[2].split()[19])
    began_ns = (ticks + 1) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")  # after boot, and not before it began
    return time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME) + began_ns


def _read_table(name: str) -> tuple[_Watch | None, bytes]:
    data = cache_files.open_mapped(_PART, name)
    if data is not None and len(data) <= _MAX_TABLE_BYTES:
        body = data[4:]
        if zlib.crc32(body) == int.from_bytes(data[:4], "little"):  # marshal trusts what it reads
            return _parse_table(body)
    return _parse_table(_kept_here[name]) if name in _kept_here else (None, marshal.dumps({}))


def _parse_table(body: bytes) -> tuple[_Watch, bytes]:
    watch, rows = marshal.loads(body)
    return _Watch(*watch), rows


def _newly_loaded(watch: _Watch | None, roots: list[Place]) -> dict[str, str]:
    known = watch.loaded if watch is not None else {}
    within = tuple(f"{path}/" for _, path in roots)
    alone = {path for _, path in roots}
    return {
        source: bytecode for source, bytecode in loaded_modules(known) if source.startswith(within) or source in alone
    }


def _looks(watch: _Watch) -> bytes:
    """Look at all that is watched, in the order of `_Pass._looks`. Nearly all of the time goes to the kernel."""
    found = array("q")
    add = found.extend
    for path in watch.folders:
        found.append(_look(path)[1])
    for path in watch.libraries:
        add(_look(path)[:2])
    for source, bytecode in watch.loaded.items():
        add(_look(source))
        add(_look(bytecode))
    return found.tobytes()


class _Pass:
    """One pass over all files: by content where they are new or changed, and by the rows of the table where not."""

    def __init__(self, roots: list[Place], loaded: dict[str, str], known: Mapping[str, _Row]) -> None:
        self._files = code_files(roots)
        self._loaded = loaded
        self._known = {path: _Seen(*row) for path, row in known.items()}  # type: ignore[arg-type]
        self._settled_ns = time.time_ns() - _SETTLED_NS
        self._rows: dict[str, _Seen] = {}
        self._lines: dict[str, list[str]] = {label: [] for label, _ in roots}
        self.read_again = self.newest_ns = 0
        # In other folders nothing can stand in the way of a module that is loaded.
        self._folders = sorted({source.rpartition("/")[0] for source in loaded} & self._files.folders.keys())
        for path, label in self._files.sources.items():
            self._add_source(path, label)
        for path, label in self._files.libraries.items():
            self._add_library(path, label)
        for source, bytecode in sorted(loaded.items()):
            self._add_bytecode(bytecode, source)
        self.digests = {
            label: hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()
            for label, lines in self._lines.items()
        }

    def table(self) -> bytes:
        """Return what the next pass needs."""
        files = self._files
        watch = (self.digests, self._loaded, self._folders, list(files.libraries), self._looks())
        rows = {path: tuple(row) for path, row in self._rows.items()}
        return marshal.dumps((watch, marshal.dumps(rows)))

    def _add_source(self, path: str, label: str) -> None:
        look, row = _look(path), self._known.get(path)
        if row is None or row.look != look:
            before, row = row, _Seen(self._settled(look), _digest(path))
            self.read_again += 1
            # Another link to a file, as installers make them, changes its third time and not its content.
            if before is None:
                self.newest_ns = max(self.newest_ns, look[1])
            elif before.digest != row.digest:
                self.newest_ns = max(self.newest_ns, look[1], look[2])
        self._rows[path] = row
        self._add_line(label, row.digest)

    def _add_library(self, path: str, label: str) -> None:
        size, modified, _, _ = _look(path)
        look = self._settled((size, modified, 0, 0))  # another link to it changes the rest; reading it takes a second
        row = self._known.get(path)
        if row is None:
            digest = f"{size} {_digest(path, _HEAD_BYTES)}"
            row = _Seen(look, digest, digest)
        elif row.look != look:
            row = row._replace(look=look, digest=_digest(path))
        self._rows[path] = row
        self._add_line(label, row.digest)

    def _add_bytecode(self, path: str, source: str) -> None:
        look, row = _look(path), self._known.get(path)
        beside = self._rows[source].digest if source in self._rows else ""
        if look == _ABSENT or not beside:
            return
        if row is None or row.source != beside:
            digest = _digest(path, skip=_PYC_HEADER_BYTES)
            row = _Seen(self._settled(look), digest, digest, beside)
        elif row.look != look:
            row = row._replace(look=self._settled(look), digest=_digest(path, skip=_PYC_HEADER_BYTES))
        self._rows[path] = row
        if row.digest != row.first:
            self._add_line(self._files.sources[source], f"bytecode {row.digest}")

    def _add_line(self, label: str, description: str) -> None:
        package, _, place = label.partition("/")
        self._lines[package].append(f"{place}\0{description}\n")

    def _looks(self) -> bytes:
        found = array("q")
        for folder in self._folders:
            modified = self._files.folders[folder]
            found.append(modified if modified < self._settled_ns else -1)
        for path in self._files.libraries:
            found.extend(self._rows[path].look[:2])
        for source, bytecode in self._loaded.items():
            for path in (source, bytecode):
                found.extend(self._rows[path].look if path in self._rows else _ABSENT)
        return found.tobytes()

    def _settled(self, look: Look) -> Look:
        return look if max(look[1], look[2]) < self._settled_ns else _UNSETTLED


def _look(path: str) -> Look:
    try:
        found = os.stat(path)
    except OSError:
        return _ABSENT
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def _digest(path: str, limit: int = -1, *, skip: int = 0) -> str:
    """Return the digest of a file's content; of a file that cannot be read, why not."""
    digest = hashlib.sha256()
    try:
        with open(path, "rb", buffering=0) as stream:
            stream.seek(skip)
            while piece := stream.read(limit if limit >= 0 else _CHUNK_BYTES):
                digest.update(piece)
                if limit >= 0:
                    break
    except OSError as error:
        return f"errno {error.errno}"
    return digest.hexdigest()
