"""The description of a stored directory: which files it has, and of which chunks each is made.

A chunk is known by the SHA-256 of its bytes, a directory by that of its description in canonical form. So a digest
says every byte, whatever storage the bytes come from. What is read here may come from anywhere: sizes, counts and
names are bounded before they are believed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from glowplug.core.disk.digest import sha256
from glowplug.core.disk.relative_paths import objection
from glowplug.core.errors import DamagedObjectError

from .cutting import LARGEST_BYTES

NAME = "glowplug.json"  # the object that says what is stored under a URL
POOL = ".glowplug-chunks"  # the folder beside it that has the chunks, by digest

FORMAT = 1
MAX_BYTES = 1 << 26
MAX_FILES = 100_000
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Chunk:
    """A run of bytes, known by its SHA-256."""

    digest: str
    size: int


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One file: its path in the directory, and its chunks in order."""

    path: str
    chunks: tuple[Chunk, ...]

    @property
    def size(self) -> int:
        """The length of the file."""
        return sum(chunk.size for chunk in self.chunks)

    def spans(self) -> Iterator[tuple[int, Chunk]]:
        """Return each chunk with its offset."""
        offset = 0
        for chunk in self.chunks:
            yield offset, chunk
            offset += chunk.size


@dataclass(frozen=True, slots=True)
class Tree:
    """A directory of files in the order of their paths, or a single file."""

    files: tuple[StoredFile, ...]
    single: bool = False

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(one.size for one in self.files)


def dump(tree: Tree) -> bytes:
    """Return the description of a tree in its canonical form."""
    files = [
        {"path": one.path, "chunks": [[chunk.digest, chunk.size] for chunk in one.chunks]}
        for one in sorted(tree.files, key=lambda one: one.path)
    ]
    document = {"format": FORMAT, "kind": "file" if tree.single else "directory", "files": files}
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def is_digest(text: str) -> bool:
    """Say whether a text is a digest as they are written here."""
    return _DIGEST.fullmatch(text) is not None


def digest_of(tree: Tree) -> str:
    """Return the digest that names a tree."""
    return sha256(dump(tree))


def parse(data: bytes | memoryview, where: str) -> Tree:
    """Read a description; raise `DamagedObjectError` for one that is not of the format."""
    if len(data) > MAX_BYTES:
        raise _damaged(where, f"it is larger than {MAX_BYTES} bytes")
    try:
        document = json.loads(bytes(data))
        version = document["format"]
        if version != FORMAT:
            raise _damaged(where, f"its format is {str(version)[:20]}, and this version of Glowplug knows {FORMAT}")
        tree = Tree(tuple(_file(one, where) for one in document["files"]), _is_single(document["kind"], where))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _damaged(where, "it is not the JSON that was pushed") from error
    _check_names(tree, where)
    return tree


def _is_single(kind: Any, where: str) -> bool:
    if kind not in ("file", "directory"):
        raise _damaged(where, "its kind is neither file nor directory")
    return bool(kind == "file")


def _file(document: Any, where: str) -> StoredFile:
    path = document["path"]
    reason = objection(path) if isinstance(path, str) else "it is no text"
    if reason:
        raise _damaged(where, f"it names a file {ascii(path)[:200]}, which is not safe: {reason}")
    return StoredFile(path, tuple(_chunk(digest, size, where) for digest, size in document["chunks"]))


def _chunk(digest: Any, size: Any, where: str) -> Chunk:
    if not isinstance(digest, str) or not is_digest(digest):
        raise _damaged(where, "a chunk has no digest")
    if type(size) is not int or not 0 < size <= LARGEST_BYTES:
        raise _damaged(where, f"a chunk of {str(size)[:20]} bytes")
    return Chunk(digest, size)


def _check_names(tree: Tree, where: str) -> None:
    """Refuse trees that no directory can hold: a name twice, or one that is a file and a folder."""
    if not tree.files or len(tree.files) > MAX_FILES or (tree.single and len(tree.files) != 1):
        raise _damaged(where, f"it lists {len(tree.files)} files")
    names = [one.path for one in tree.files]
    if names != sorted(set(names)):
        raise _damaged(where, "its files are not in order, or one is listed twice")
    known = set(names)
    for name in names:
        folder = name.rpartition("/")[0]
        while folder:
            if folder in known:
                raise _damaged(where, f"{ascii(folder)[:200]} is a file and a folder")
            folder = folder.rpartition("/")[0]


def _damaged(where: str, reason: str) -> DamagedObjectError:
    return DamagedObjectError(
        f"the description of what is stored here cannot be used ({reason})", seen=where, remedy="push it again"
    )
