"""SHA-256 over bytes, files and file ranges."""

from __future__ import annotations

import contextlib
import importlib
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_CHUNK_BYTES = 1 << 22
_SMALL_BYTES = 1 << 18


def sha256(data: bytes | memoryview) -> str:
    """Return the hexadecimal SHA-256 of `data`."""
    digest: str = (_fast_sha256() if len(data) > _SMALL_BYTES else _small_sha256())(data).hexdigest()
    return digest


def sha256_file(path: str | Path) -> str:
    """Return the hexadecimal SHA-256 of a file, read once in large pieces."""
    digest = _fast_sha256()()
    with open(path, "rb", buffering=0) as stream:
        buffer = memoryview(bytearray(_CHUNK_BYTES))
        while count := stream.readinto(buffer):
            digest.update(buffer[:count])
    found: str = digest.hexdigest()
    return found


def _fast_sha256() -> Callable[..., Any]:
    import hashlib

    return hashlib.sha256


@cache
def _small_sha256() -> Callable[..., Any]:
    """Return Python's own: that of OpenSSL is faster, but its library takes longer to open than a manifest to hash."""
    if "hashlib" in sys.modules:
        return _fast_sha256()
    for name in ("_sha2", "_sha256"):  # from Python 3.12 on, and before
        with contextlib.suppress(ImportError, AttributeError):
            found: Callable[..., Any] = importlib.import_module(name).sha256
            return found
    return _fast_sha256()
