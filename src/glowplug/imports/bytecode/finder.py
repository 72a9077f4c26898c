"""Finds and loads modules from the archive where Python would search folders and read one file a module.

A folder of the archive gets a finder of ours in `sys.path_importer_cache`, where Python keeps the one it would use, so
the order of `sys.path`, a package's `__path__` and other people's finders mean what they always do. A folder that
changed since, and every name that the archive does not have, is left to Python's own finder, which ours inherits from.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
    SourceFileLoader,
    SourcelessFileLoader,
)
from types import CodeType, ModuleType
from typing import Any

from .archive import Archive, Row, is_unchanged


class ArchivedCode:
    """An archive at work: which code was unpacked ahead, and how many modules it has given."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive
        self.served = 0
        self._ready: dict[str, CodeType] = {}

    def unpack_next(self, keep_on: Callable[[], bool]) -> int:
        """Unpack code ahead, in order, as long as `keep_on()` says so; return how many."""
        count = 0
        for row in self.archive:
            if not keep_on():
                break
            if row.early and row.length and row.name not in sys.modules and row.name not in self._ready:
                code = self.archive.code(row)
                if code is not None:
                    self._ready[row.name] = code
                    count += 1
        return count

    def code(self, row: Row) -> CodeType | None:
        """Return the code of a module whose source is as it was, else None."""
        if not is_unchanged(row):
            return None
        code = self._ready.pop(row.name, None) or self.archive.code(row)
        self.served += code is not None
        return code

    def forget(self) -> None:
        """Drop code that was unpacked and not asked for."""
        self._ready.clear()


class ArchiveLoader(SourceFileLoader):
    """Loads a module of the archive, or its file where that has changed. Then it is Python's own loader."""

    def __init__(self, row: Row, archived: ArchivedCode) -> None:
        super().__init__(row.name, row.path)
        self._row, self._archived = row, archived

    def get_code(self, fullname: str) -> CodeType | None:
        """Return the module's code."""
        row, archived = self.__dict__.pop("_row"), self.__dict__.pop("_archived")
        self.__class__ = SourceFileLoader  # type: ignore[assignment]
        code = archived.code(row) if fullname == row.name else None
        return code if code is not None else self.get_code(fullname)


class ArchiveFinder(FileFinder):
    """Python's finder for one folder, which knows some answers already."""

    def __init__(self, folder: str, modified_ns: int, archived: ArchivedCode) -> None:
        super().__init__(
            folder,
            (ExtensionFileLoader, EXTENSION_SUFFIXES),
            (SourceFileLoader, SOURCE_SUFFIXES),
            (SourcelessFileLoader, BYTECODE_SUFFIXES),
        )
        self._modified_ns = modified_ns
        self._archived = archived
        self._trusted: bool | None = None

    def find_spec(self, fullname: str, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the spec that Python's own finder would."""
        row = self._archived.archive.row(fullname)
        if row is None or not self._is_unchanged() or _folder_of(row) != self.path:
            return super().find_spec(fullname, target)
        return make_spec(row, self._archived)

    def invalidate_caches(self) -> None:
        """Look at the folder again before the next answer."""
        self._trusted = None
        super().invalidate_caches()

    def _is_unchanged(self) -> bool:
        if self._trusted is None:
            try:
                self._trusted = os.stat(self.path).st_mtime_ns == self._modified_ns  # noqa: PTH116
            except OSError:
                self._trusted = False
        return self._trusted


def make_spec(row: Row, archived: ArchivedCode) -> ModuleSpec:
    """Return a module's spec, as `spec_from_file_location` would make it."""
    loader = ArchiveLoader(row, archived) if row.length else ExtensionFileLoader(row.name, row.path)
    spec: Any = ModuleSpec(row.name, loader, origin=row.path)
    spec._set_fileattr = True
    if row.is_package:
        spec.submodule_search_locations = [row.path.rpartition("/")[0]]
    return spec  # type: ignore[no-any-return]


def install(archived: ArchivedCode) -> list[str]:
    """Put a finder of ours where Python looks for one, for each folder of the archive; return the folders."""
    done = []
    for folder, modified_ns in archived.archive.folders.items():
        if type(sys.path_importer_cache.get(folder)) in (FileFinder, type(None)):
            sys.path_importer_cache[folder] = ArchiveFinder(folder, modified_ns, archived)
            done.append(folder)
    return done


def _folder_of(row: Row) -> str:
    folder = row.path.rpartition("/")[0]
    return folder.rpartition("/")[0] if row.is_package else folder
