"""Writes a bundle into a directory: files, weights as a stream, and the manifest last.

The directory is the hidden sibling that `core.files.new_directory` yields, so a bundle appears whole or not
at all; the manifest is written last so that even a copy that breaks off is no bundle.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

from glowplug.core.disk.digest import sha256, sha256_file
from glowplug.core.disk.files import sync_directory, write_file
from glowplug.core.dtypes import BY_NAME
from glowplug.core.errors import NotAModelError, TensorSizeError, UnknownDtypeError, UsageError
from glowplug.core.manifest import (
    Asset,
    Engine,
    FileEntry,
    Fingerprint,
    InitStep,
    LiteRTSettings,
    Manifest,
    Signature,
    StoredTensor,
    StoredVariable,
)

from . import layout, schema

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_CHUNK_BYTES = 1 << 24


class BundleWriter:
    """One bundle being written. Use it in a `with` block; `finish` completes the bundle.

    A tensor whose dtype, shape and bytes were added before is not stored again. Only one chunk of one tensor
    is in memory here at any time.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._files: dict[str, FileEntry] = {}
        self._tensors: list[StoredTensor] = []
        self._variables: list[StoredVariable] = []
        self._by_bytes: dict[tuple[str, bytes], int] = {}
        self._by_content: dict[tuple[str, tuple[int, ...], bytes], int] = {}
        self._weights: IO[bytes] | None = None
        self._weights_digest = hashlib.sha256()
        self._weights_size = 0

    def __enter__(self) -> BundleWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._weights is not None:
            self._weights.close()

    def add_file(self, relative: str, source: bytes | Path) -> None:
        """Store bytes, or a copy of a file, under `relative`."""
        target = self._claim(relative)
        if isinstance(source, Path):
            shutil.copyfile(source, target)
            digest = sha256_file(target)
        else:
            target.write_bytes(source)
            digest = sha256(source)
        _sync_file(target)
        self._files[relative] = FileEntry(target.stat().st_size, digest)

    def copy_tree(self, relative: str, source: Path) -> None:
        """Store every regular file below the directory `source` under `relative`."""
        if not source.is_dir():
            raise NotAModelError("not a directory", seen=source, remedy="name the directory to copy")
        for path in sorted(source.rglob("*")):
            if path.is_file():
                self.add_file(f"{relative.rstrip('/')}/{path.relative_to(source).as_posix()}", path)

    def add_tensor(self, node: str, name: str, dtype: str, shape: Sequence[int], buffer: ReadableBuffer) -> int:
        """Store a tensor and return its index in the tensor table.

        If the same content came before, that entry's index is returned and nothing is written: the caller
        feeds the entry's `node` (see `tensors`) in place of its own.
        """
        data = _as_bytes(buffer)
        shape = tuple(int(dim) for dim in shape)
        element = BY_NAME.get(dtype)
        if element is None or not element.itemsize:
            raise UnknownDtypeError(
                f"the dtype of tensor {name} cannot be stored", seen=dtype, remedy="cast it to another"
            )
        if data.nbytes != element.itemsize * prod(shape):
            raise TensorSizeError(
                f"the bytes of tensor {name} do not follow from its dtype and shape",
                seen=f"{data.nbytes} for {dtype}{list(shape)}",
                remedy="give the bytes of the whole tensor",
            )
        digest = hashlib.sha256(data).digest()
        content = (dtype, shape, digest)
        known = self._by_content.get(content)
        if known is not None:
            return known
        offset = layout.align(self._weights_size)
        self._append(bytes(offset - self._weights_size))
        for chunk in _chunks(data):
            self._append(chunk)
        self._by_content[content] = len(self._tensors)
        self._by_bytes.setdefault((dtype, digest), len(self._tensors))
        self._tensors.append(StoredTensor(node, name, dtype, shape, offset, data.nbytes))
        return len(self._tensors) - 1

    def add_variable(self, name: str, dtype: str, shape: Sequence[int], buffer: ReadableBuffer, *, keep: bool) -> bool:
        """Say where a variable's value is, and whether it is there: with `keep` it is stored where it was not.

        Call it when all tensors were added: the bytes of most variables are there already, in some shape.
        """
        data = _as_bytes(buffer)
        known = self._by_bytes.get((dtype, hashlib.sha256(data).digest()))
        if known is None:
            if not keep:
                return False
            known = self.add_tensor("", name, dtype, shape, data)
        self._variables.append(StoredVariable(name, tuple(int(dim) for dim in shape), known))
        return True

    def node_of(self, index: int) -> str:
        """Return the node that takes a tensor of the table."""
        return self._tensors[index].node

    @property
    def tensors(self) -> tuple[StoredTensor, ...]:
        """The tensor table so far."""
        return tuple(self._tensors)

    def finish(
        self,
        *,
        engine: Engine,
        signatures: Mapping[str, Signature],
        assets: Sequence[Asset] = (),
        initializers: Sequence[InitStep] = (),
        op_libraries: Sequence[str] = (),
        fingerprint: Fingerprint | None = None,
        provenance: Mapping[str, Any] | None = None,
        equivalence: Mapping[str, Any] | None = None,
        litert: LiteRTSettings | None = None,
    ) -> Manifest:
        """Make everything durable, write the manifest last, and return it as a reader will see it."""
        if self._weights is not None:
            self._weights.flush()
            os.fsync(self._weights.fileno())
            self._weights.close()
            self._files[layout.WEIGHTS] = FileEntry(self._weights_size, self._weights_digest.hexdigest())
        data = schema.dump(
            Manifest(
                engine=engine,
                signatures=signatures,
                files=dict(sorted(self._files.items())),
                tensors=self.tensors,
                variables=tuple(self._variables),
                assets=tuple(assets),
                initializers=tuple(initializers),
                op_libraries=tuple(op_libraries),
                fingerprint=fingerprint,
                provenance=provenance or {},
                equivalence=equivalence or {},
                litert=litert,
            )
        )
        manifest = schema.parse(data)  # what a reader would refuse is refused here, before it is written
        for directory in sorted({(self._directory / path).parent for path in self._files}):
            sync_directory(directory)
        write_file(self._directory / layout.MANIFEST, data)
        return manifest

    def _claim(self, relative: str) -> Path:
        layout.check_path(relative, "the file to add")
        if relative in self._files or relative in (layout.MANIFEST, layout.WEIGHTS):
            raise UsageError("this name is taken in the bundle", seen=relative, remedy="give the file another name")
        target = self._directory / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        return target

    def _append(self, data: bytes | memoryview) -> None:
        if self._weights is None:
            self._weights = (self._directory / layout.WEIGHTS).open("xb", buffering=0)
        view = memoryview(data)
        while view:
            view = view[self._weights.write(view) :]
        self._weights_digest.update(data)
        self._weights_size += len(data)


def _as_bytes(buffer: ReadableBuffer) -> memoryview:
    data = memoryview(buffer)
    # A view with a zero in its shape, or with more than one dimension in Fortran order, cannot be cast.
    return data.cast("B") if data.nbytes and data.c_contiguous else memoryview(bytes(data))


def _chunks(data: memoryview) -> Iterator[memoryview]:
    for start in range(0, len(data), _CHUNK_BYTES):
        yield data[start : start + _CHUNK_BYTES]


def _sync_file(path: Path) -> None:
    with path.open("rb") as stream:
        os.fsync(stream.fileno())
