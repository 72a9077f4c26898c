"""SHA-256 over bytes, files and file ranges."""

from __future__ import annotations

import hashlib
from pathlib import Path

_CHUNK_BYTES = 1 << 22


def sha256(data: bytes | memoryview) -> str:
    """Return the hexadecimal SHA-256 of `data`."""
    return hashlib.sha256(data).hexdigest()


def sha256_file(path: Path) -> str:
    """Return the hexadecimal SHA-256 of a file, read once in large pieces."""
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as stream:
        buffer = memoryview(bytearray(_CHUNK_BYTES))
        while count := stream.readinto(buffer):
            digest.update(buffer[:count])
    return digest.hexdigest()
