"""Opens a bundle for use: reads the manifest and proves that the files it lists are there, whole and inside.

The directory is opened once, and everything is reached through it: a bundle that is replaced meanwhile is either the
one that was opened or an error, never a mixture. Weights are mapped, never read, so their digests are not checked here:
`verify` does that. A file that somebody shortens while it is mapped ends the process (SIGBUS); replacing a bundle as
`pack` does never changes a file that is there.
"""

from __future__ import annotations

import mmap
import os
from io import FileIO
from typing import TYPE_CHECKING

from glowplug.core.disk.digest import sha256
from glowplug.core.disk.regular_files import LeavesFolderError, NotRegularError, OpenFolder
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

if TYPE_CHECKING:
    from pathlib import Path  # which brings more with it than all of this

_REMEDY = "fetch or pack the bundle again"


class Bundle:
    """A bundle whose manifest and file sizes have been checked. Graphs and other files are checked when they are read.

    `root` is where it was found, without symbolic links; `folder` is the directory itself, and `manifest_digest` the
    SHA-256 of the manifest's file.
    """

    __slots__ = ("_root", "folder", "manifest", "manifest_digest")

    def __init__(self, root: str, manifest: Manifest, manifest_digest: str, folder: OpenFolder) -> None:
        self._root, self.manifest, self.manifest_digest, self.folder = root, manifest, manifest_digest, folder

    @property
    def root(self) -> Path:
        """Where it was found."""
        from pathlib import Path

        return Path(self._root)

    def graph_bytes(self, portable: bool = False) -> bytes:
        """Return the serialized graph, optimised or portable, after checking its digest."""
        return self.read_file(layout.PORTABLE_GRAPH if portable else layout.GRAPH)

    def read_file(self, path: str) -> bytes:
        """Return the content of a file that the manifest lists, after checking its digest."""
        entry = self.manifest.files.get(path)
        if entry is None:
            raise MissingFileError("the bundle does not have this file", seen=path, remedy=_REMEDY)
        return self._read_checked(path, entry, self.folder, path)

    def open_folder(self, path: str) -> OpenFolder:
        """Open a folder of the bundle."""
        try:
            return OpenFolder(f"{self.folder.path}/{path}")
        except OSError as error:
            raise MissingFileError(
                "the bundle lacks a folder", seen=f"{path} ({error.strerror})", remedy=_REMEDY
            ) from error

    def check_file(self, path: str, folder: OpenFolder, name: str) -> None:
        """Check that `name` in an open folder has the digest that the manifest gives for `path`."""
        self._read_checked(path, self.manifest.files[path], folder, name)

    @staticmethod
    def _read_checked(path: str, entry: FileEntry, folder: OpenFolder, name: str) -> bytes:
        with FileIO(_open(folder, name)) as stream:
            check_size(path, os.fstat(stream.fileno()).st_size, entry)  # before memory is taken for it
            data = stream.read(entry.size + 1)  # of a file that grows, no more than shows it
        check_size(path, len(data), entry)
        check_digest(path, sha256(data), entry)
        return data

    def open_file(self, path: str) -> FileIO:
        """Open a listed file for unbuffered reading; refuse one that is missing, not regular or not inside."""
        return FileIO(_open(self.folder, path))

    def map_weights(self) -> mmap.mmap:
        """Map `weights.bin` shared and read-only; close the map when no tensor points into it any more.

        Where the bundle has no weight bytes the map is one anonymous byte: an address that tensors without
        elements can have, and nothing to read.
        """
        entry = self.manifest.files.get(layout.WEIGHTS)
        if entry is None or not entry.size:
            return mmap.mmap(-1, 1, access=mmap.ACCESS_READ)
        with self.open_sized(layout.WEIGHTS) as stream:
            return mmap.mmap(stream.fileno(), entry.size, access=mmap.ACCESS_READ)

    def open_sized(self, path: str) -> FileIO:
        """Open a listed file that is as long as the manifest says."""
        stream = self.open_file(path)
        try:
            check_size(path, os.fstat(stream.fileno()).st_size, self.manifest.files[path])
        except BaseException:
            stream.close()
            raise
        return stream

    def asset_path(self, asset: Asset) -> Path:
        """Return a path to the file of an asset, good as long as this bundle is referred to."""
        from pathlib import Path

        return Path(self.folder.path, asset.path)

    @property
    def warmup_files(self) -> tuple[Path, ...]:
        """The files below `warmup/`, in the order of their names."""
        return tuple(self.root / path for path in sorted(self.manifest.files) if path.startswith(layout.WARMUP))


def open_bundle(directory: str | Path) -> Bundle:
    """Check and open the bundle at `directory`. Files that the manifest does not list are not looked at."""
    root = os.path.realpath(directory)
    folder = _open_folder(root)
    data = _manifest_bytes(folder, root)
    bundle = Bundle(root, schema.parse(data), sha256(data), folder)
    for path, entry in bundle.manifest.files.items():
        with bundle.open_file(path) as stream:
            check_size(path, os.fstat(stream.fileno()).st_size, entry)
    return bundle


def read_manifest(root: str | Path) -> Manifest:
    """Read and parse the manifest of the bundle at `root`."""
    path = os.fspath(root)
    return schema.parse(_manifest_bytes(_open_folder(path), path))


def _open_folder(root: str) -> OpenFolder:
    try:
        return OpenFolder(root)
    except FileNotFoundError:
        from pathlib import Path

        from glowplug.core.disk.files import restore_displaced

        if restore_displaced(Path(root)):  # whoever was replacing it was killed halfway
            return _open_folder(root)
        raise _not_a_bundle(root) from None
    except NotADirectoryError:
        raise _not_a_bundle(root) from None
    except OSError as error:
        from glowplug.core.disk.refusals import remedy

        seen = f"{root} ({error.strerror})"
        raise StorageError("the bundle cannot be opened", seen=seen, remedy=remedy(error)) from error


def _manifest_bytes(folder: OpenFolder, root: str) -> bytes:
    try:
        with FileIO(folder.open(layout.MANIFEST)) as stream:
            return stream.read(schema.MAX_MANIFEST_BYTES + 1)
    except FileNotFoundError:
        raise _not_a_bundle(root) from None
    except NotRegularError as error:
        raise _not_a_bundle(root, f" ({layout.MANIFEST} is {error.strerror})") from None
    except LeavesFolderError as error:
        raise _leaves(error) from None
    except OSError as error:
        from glowplug.core.disk.refusals import remedy

        seen = f"{root} ({error.strerror})"
        raise StorageError("the manifest cannot be read", seen=seen, remedy=remedy(error)) from error


def _not_a_bundle(root: str, reason: str = "") -> NotABundleError:
    return NotABundleError(
        f"not a bundle: there is no {layout.MANIFEST}", seen=f"{root}{reason}", remedy="make one with `glowplug pack`"
    )


def _open(folder: OpenFolder, path: str) -> int:
    try:
        return folder.open(path)
    except FileNotFoundError:
        raise MissingFileError("the bundle lacks a file", seen=path, remedy=_REMEDY) from None
    except LeavesFolderError as error:
        raise _leaves(error) from None
    except NotRegularError as error:
        raise MissingFileError(
            "a file of the bundle is not a regular file", seen=f"{path} ({error.strerror})", remedy=_REMEDY
        ) from None
    except OSError as error:
        raise MissingFileError(
            "a file of the bundle cannot be read", seen=f"{path} ({error.strerror})", remedy=_REMEDY
        ) from error


def _leaves(error: LeavesFolderError) -> UnsafePathError:
    return UnsafePathError(
        "a file of the bundle is a link that leaves it",
        seen=f"{error.filename} -> {error.filename2}",
        remedy="put the file itself into the bundle's directory",
    )


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
