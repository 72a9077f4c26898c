"""Makes the archive: gathers the bytecode of the modules that this start has loaded from installed packages."""

from __future__ import annotations

import _imp
import marshal
import os
import sys
import sysconfig
import zlib
from collections.abc import Mapping
from importlib.util import MAGIC_NUMBER
from types import ModuleType
from typing import Any

from . import archive
from .archive import Archive, Row

_PYC_HEADER_BYTES = 16
_WORTH_WRITING = 25  # new modules; fewer are not worth another 40 MB of writing


def identity() -> tuple[str, ...]:
    """Return what bytecode depends on besides the source files."""
    return (sys.implementation.cache_tag or "", MAGIC_NUMBER.hex(), str(sys.flags.optimize), sys.prefix)


def archive_name() -> str:
    """Return the name of this interpreter's archive."""
    return f"{zlib.crc32(repr(identity()).encode()):08x}.code"


def update(known: Archive | None, early: frozenset[str], changing: Mapping[str, bool]) -> int:
    """Write the archive anew where this start has loaded modules that it lacks; return how many it then has, or 0.

    `early` are the modules that TensorFlow's import loaded in this start; `changing` says of some of them whether their
    bodies changed settings of the process.
    """
    roots = tuple({os.path.join(sysconfig.get_path(one), "") for one in ("stdlib", "platstdlib", "purelib", "platlib")})  # noqa: PTH118
    modules: dict[str, tuple[Row, bytes | memoryview]] = {}
    new = 0
    for name, module in list(sys.modules.items()):
        found = _row(name, module, roots, early)
        if found is None:
            continue
        row = known.row(name) if known is not None else None
        if row is not None and known is not None and row[:6] == found[:6]:
            found = found._replace(changes=changing.get(name, row.changes))
            piece: bytes | memoryview | None = known.piece(row)
        else:
            found = found._replace(changes=changing.get(name, True))
            piece = _bytecode(found)
            new += piece is not None
        if piece is not None:
            modules[name] = (found, piece)
    if new < _WORTH_WRITING:
        return 0
    for row in known if known is not None else ():
        if row.name not in modules and known is not None and archive.is_unchanged(row):
            piece = known.piece(row)
            if piece is not None:
                modules[row.name] = (row, piece)
    folders = {_folder(row) for row, _ in modules.values()}
    times = {folder: os.stat(folder).st_mtime_ns for folder in folders}  # noqa: PTH116
    return len(modules) if archive.write(archive_name(), identity(), times, list(modules.values())) else 0


def _row(name: str, module: ModuleType, roots: tuple[str, ...], early: frozenset[str]) -> Row | None:
    spec = getattr(module, "__spec__", None)
    path = getattr(spec, "origin", None)
    if (
        spec is None
        or spec.name != name
        or type(path) is not str
        or not spec.has_location
        or not path.startswith(roots)
    ):
        return None
    if not path.endswith((".py", ".so")):
        return None
    try:
        found = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    is_package = spec.submodule_search_locations is not None
    return Row(
        name, path, is_package, found.st_mtime_ns, found.st_ctime_ns, found.st_size, name in early, True, 0, 0, 0
    )


def _bytecode(row: Row) -> bytes | None:
    """Return the code of a module as its `.pyc` has it, provided that is up to date; nothing for an extension."""
    from importlib.util import cache_from_source

    if row.path.endswith(".so"):
        return b""
    try:
        with open(cache_from_source(row.path), "rb") as stream:  # noqa: PTH123
            data = stream.read()
    except (OSError, NotImplementedError):
        return None
    flags, seconds, size = (int.from_bytes(data[at : at + 4], "little") for at in (4, 8, 12))
    fresh = flags == 0 and seconds == (row.modified_ns // 1_000_000_000) & 0xFFFFFFFF and size == row.size & 0xFFFFFFFF
    if data[:4] != MAGIC_NUMBER or not fresh:
        return None
    code = marshal.loads(memoryview(data)[_PYC_HEADER_BYTES:])
    fix: Any = _imp._fix_co_filename  # type: ignore[attr-defined]
    fix(code, row.path)  # as the import system does: it may have been compiled under another name
    return marshal.dumps(code)


def _folder(row: Row) -> str:
    folder = row.path.rpartition("/")[0]
    return folder.rpartition("/")[0] if row.is_package else folder
