"""Opens a bundle for use: reads the manifest and proves that the files it lists are there, whole and inside.

Weights are mapped, never read, so their digests are not checked here: `verify` does that.
"""

from __future__ import annotations

import mmap
import os
import stat
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from glowplug.core.digest import sha256
from glowplug.core.errors import (
    DigestError,
    FileSizeError,
    MissingFileError,
    NotABundleError,
    StorageError,
    UnsafePathError,
)
from glowplug.core.manifest import Asset, FileEntry, Manifest

from . import layout, schema

_REMEDY = "fetch or pack the bundle again"


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle whose manifest, file sizes and graphs have been checked. `root` has no symbolic link in it."""

    root: Path
    manifest: Manifest

    def graph_bytes(self, portable: bool = False) -> bytes:
        """Return the serialized graph, optimised or portable, after checking its digest."""
        return self.read_file(layout.PORTABLE_GRAPH if portable else layout.GRAPH)

    def check_files(self, prefix: str) -> None:
        """Check the digest of every listed file whose path begins with `prefix`."""
        for path, entry in self.manifest.files.items():
            if path.startswith(prefix):
                _read_checked(self.root, path, entry)

    def map_weights(self) -> mmap.mmap:
        """Map `weights.bin` shared and read-only; close the map when no tensor points into it any more.

        Where the bundle has no weight bytes the map is one anonymous byte: an address that tensors without
        elements can have, and nothing to read.
        """
        entry = self.manifest.files.get(layout.WEIGHTS)
        if entry is None or not entry.size:
            return mmap.mmap(-1, 1, access=mmap.ACCESS_READ)
        with open_file(self.root, layout.WEIGHTS) as stream:
            check_size(layout.WEIGHTS, os.fstat(stream.fileno()).st_size, entry)
            return mmap.mmap(stream.fileno(), entry.size, access=mmap.ACCESS_READ)

    def asset_path(self, asset: Asset) -> Path:
        """Return where the file of an asset lies."""
        return self.root / asset.path

    def read_file(self, path: str) -> bytes:
        """Return the content of a file that the manifest lists, after checking its digest."""
        entry = self.manifest.files.get(path)
        if entry is None:
            raise MissingFileError("the bundle does not have this file", seen=path, remedy=_REMEDY)
        return _read_checked(self.root, path, entry)

    @property
    def warmup_files(self) -> tuple[Path, ...]:
        """The files below `warmup/`, in the order of their names."""
        return tuple(self.root / path for path in sorted(self.manifest.files) if path.startswith(layout.WARMUP))


def open_bundle(directory: Path) -> Bundle:
    """Check and open the bundle at `directory`. Files that the manifest does not list are not looked at."""
    root = Path(os.path.realpath(directory))  # once: an alias that is switched later must not mix two bundles
    manifest = read_manifest(root)
    for path, entry in manifest.files.items():
        check_size(path, locate(root, path)[1].st_size, entry)
    bundle = Bundle(root, manifest)
    for path in (layout.GRAPH, layout.PORTABLE_GRAPH):
        if path in manifest.files:
            _read_checked(root, path, manifest.files[path])
    return bundle


def read_manifest(root: Path) -> Manifest:
    """Read and parse the manifest of the bundle at `root`."""
    path = root / layout.MANIFEST
    try:
        with path.open("rb") as stream:
            data = stream.read(schema.MAX_MANIFEST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        raise NotABundleError(
            f"not a bundle: there is no {layout.MANIFEST}", seen=root, remedy="make one with `glowplug pack`"
        ) from None
    except OSError as error:
        raise StorageError("the manifest cannot be read", seen=f"{path} ({error.strerror})") from error
    return schema.parse(data)


def locate(root: Path, path: str) -> tuple[Path, os.stat_result]:
    """Return the listed file and its status; refuse one that is missing, not regular or not inside `root`."""
    try:
        real = os.path.realpath(f"{root}/{path}", strict=True)
        status = os.stat(real)  # noqa: PTH116 - pathlib takes three times as long, for every file
    except FileNotFoundError:
        raise MissingFileError("the bundle lacks a file", seen=path, remedy=_REMEDY) from None
    except OSError as error:
        raise MissingFileError(
            "a file of the bundle cannot be read", seen=f"{path} ({error.strerror})", remedy=_REMEDY
        ) from error
    if not real.startswith(f"{root}{os.sep}"):
        raise UnsafePathError(
            "a file of the bundle is a link that leaves it",
            seen=f"{path} -> {real}",
            remedy="put the file itself into the bundle's directory",
        )
    if not stat.S_ISREG(status.st_mode):
        raise MissingFileError("a file of the bundle is not a regular file", seen=path, remedy=_REMEDY)
    return Path(real), status


def open_file(root: Path, path: str) -> FileIO:
    """Open a listed file for unbuffered reading."""
    try:
        return FileIO(locate(root, path)[0])
    except OSError as error:
        raise StorageError("a file of the bundle cannot be read", seen=f"{path} ({error.strerror})") from error


def check_size(path: str, size: int, entry: FileEntry) -> None:
    """Raise `FileSizeError` unless the file is as long as its entry says."""
    if size != entry.size:
        raise FileSizeError(
            f"{path} is not as long as the manifest says",
            seen=f"{size} bytes in place of {entry.size}",
            remedy=_REMEDY,
        )


def check_digest(path: str, digest: str, entry: FileEntry) -> None:
    """Raise `DigestError` unless the file's digest is that of its entry."""
    if digest != entry.sha256:
        raise DigestError(
            f"{path} is not what was packed",
            seen=f"SHA-256 {digest} in place of {entry.sha256}",
            remedy=_REMEDY,
        )


def _read_checked(root: Path, path: str, entry: FileEntry) -> bytes:
    """Read a file whose bytes are about to be used. What is hashed is what is returned."""
    with open_file(root, path) as stream:
        check_size(path, os.fstat(stream.fileno()).st_size, entry)
        data = stream.readall()
    check_size(path, len(data), entry)
    check_digest(path, sha256(data), entry)
    return data
