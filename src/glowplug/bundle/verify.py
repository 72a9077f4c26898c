"""Checks everything that can be checked about a bundle: all that opening it checks, and every byte of its
files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from glowplug.core.errors import MissingFileError, PaddingError
from glowplug.core.manifest import FileEntry, Manifest

from . import allowlist, layout
from .reader import Bundle, check_digest, open_bundle

Progress = Callable[[int, int], None]

_CHUNK_BYTES = 1 << 22


@dataclass(frozen=True, slots=True)
class Report:
    """What a verified bundle holds. `unlisted` files are in the directory and not in the manifest: never
    loaded."""

    root: Path
    manifest: Manifest
    bytes_hashed: int
    unlisted: tuple[str, ...]


def verify(directory: Path, *, progress: Progress | None = None, extra_ops: Collection[str] = ()) -> Report:
    """Check the bundle at `directory` whole; raise the `BundleError` of the first thing that is wrong.

    `progress` is called with the bytes done and the bytes there are. `extra_ops` are the custom operations that the
    caller trusts.
    """
    bundle = open_bundle(directory)
    manifest = bundle.manifest
    total = sum(entry.size for entry in manifest.files.values())
    done = 0
    for path, entry in manifest.files.items():
        digest = hashlib.sha256()
        for chunk in _chunks(bundle, path):
            digest.update(chunk)
            done += len(chunk)
            if progress is not None:
                progress(done, total)
        check_digest(path, digest.hexdigest(), entry)
    _check_padding(bundle)
    if manifest.engine == "litert":
        _check_litert(bundle)
    if manifest.engine == "native":
        for portable in (False, True):
            if not portable or layout.PORTABLE_GRAPH in manifest.files:
                allowlist.check_graph(bundle.graph_bytes(portable), manifest, extra_ops=extra_ops)
    return Report(bundle.root, manifest, done, tuple(_unlisted(bundle.root, manifest)))


def _check_litert(bundle: Bundle) -> None:
    """Check the model, and the packed weights where they are there: they may be left behind."""
    from .tflite.model import check_tflite_file

    with bundle.open_sized(layout.TFLITE) as stream:
        check_tflite_file(stream)
    settings = bundle.manifest.litert
    if settings is not None and settings.packed is not None:
        try:
            digest = hashlib.sha256()
            for chunk in _chunks(bundle, layout.PACKED):
                digest.update(chunk)
        except MissingFileError:
            return
        check_digest(layout.PACKED, digest.hexdigest(), FileEntry(settings.packed.size, settings.packed.sha256))


def _chunks(bundle: Bundle, path: str) -> Iterator[memoryview]:
    buffer = memoryview(bytearray(_CHUNK_BYTES))
    with bundle.open_file(path) as stream:
        while count := stream.readinto(buffer):
            yield buffer[:count]


def _check_padding(bundle: Bundle) -> None:
    """Raise `PaddingError` unless every byte that no tensor owns is zero: nothing hides in between."""
    manifest = bundle.manifest
    entry = manifest.files.get(layout.WEIGHTS)
    if entry is None:
        return
    with bundle.open_file(layout.WEIGHTS) as stream:
        position = 0
        for start, end in [*((t.offset, t.offset + t.nbytes) for t in manifest.tensors), (entry.size,) * 2]:
            stream.seek(position)
            while position < start:
                gap = stream.read(min(start - position, _CHUNK_BYTES))
                if not gap or gap.count(0) != len(gap):
                    raise PaddingError(
                        f"{layout.WEIGHTS} has bytes that belong to no tensor and are not zero",
                        seen=f"between {position} and {start}",
                        remedy="fetch or pack the bundle again",
                    )
                position += len(gap)
            position = end


def _packed(manifest: Manifest) -> tuple[str, ...]:
    return (layout.PACKED,) if manifest.litert is not None and manifest.litert.packed is not None else ()


def _unlisted(root: Path, manifest: Manifest) -> Iterator[str]:
    for folder, folders, names in os.walk(root):
        for name in sorted(names + [one for one in folders if Path(folder, one).is_symlink()]):
            path = Path(folder, name).relative_to(root).as_posix()
            if path not in (layout.MANIFEST, layout.SEAL, *_packed(manifest)) and path not in manifest.files:
                yield path
