"""Finds the weights inside a `.keras` file, a zip archive, and reads them where they lie if they are not compressed."""

from __future__ import annotations

import io
import zipfile
import zlib
from contextlib import ExitStack
from typing import Any

import h5py

from glowplug.core.errors import WeightsError

from . import hdf5
from .regions import RegionFile, truncated

_MEMBER = "model.weights.h5"
_LOCAL_HEADER = 30  # bytes before the name in the header of a member


def open_weights(file: RegionFile, files: ExitStack) -> tuple[h5py.File, int | None]:
    """Return the HDF5 content of a `.keras` file, and where it begins in the file (None if it is compressed)."""
    try:
        archive = files.enter_context(zipfile.ZipFile(file.path))
        member = archive.getinfo(_MEMBER)
        if member.compress_type == zipfile.ZIP_STORED:
            return _open_stored(file, member, files)
        return hdf5.open_file(io.BytesIO(archive.read(member)), file, files), None
    except KeyError:
        raise WeightsError(
            "the archive has no HDF5 weights", seen=f"no {_MEMBER} in {file.path.name}", remedy="save the model again"
        ) from None
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise truncated(file.path, error) from error


def _open_stored(file: RegionFile, member: zipfile.ZipInfo, files: ExitStack) -> tuple[h5py.File, int]:
    if member.header_offset + _LOCAL_HEADER > file.size:
        raise truncated(file.path, f"{file.size} bytes")
    header = file.read(member.header_offset, _LOCAL_HEADER).tobytes()
    begin = member.header_offset + _LOCAL_HEADER + sum(int.from_bytes(header[i : i + 2], "little") for i in (26, 28))
    if begin + member.file_size > file.size:
        raise truncated(file.path, f"{file.size} bytes, and {_MEMBER} ends at {begin + member.file_size}")
    return hdf5.open_file(_Window(file, begin, member.file_size), file, files), begin


class _Window(io.RawIOBase):
    """A part of a file as a file, for HDF5 to read its tables from."""

    def __init__(self, file: RegionFile, begin: int, size: int) -> None:
        self._file, self._begin, self._size, self._at = file, begin, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def readinto(self, buffer: Any) -> int:
        count = max(0, min(len(buffer), self._size - self._at))
        if count:
            memoryview(buffer).cast("B")[:count] = self._file.read(self._begin + self._at, count).data
        self._at += count
        return count
