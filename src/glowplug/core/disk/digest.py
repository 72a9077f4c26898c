"""SHA-256 over bytes, files and file ranges."""

from __future__ import annotations

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
    if len(data) > _SMALL_BYTES:
        from hashlib import sha256 as make
    else:
        make = _python_sha256()
    digest: str = make(data).hexdigest()
    return digest


def sha256_file(path: Path) -> str:
    """Return the hexadecimal SHA-256 of a file, read once in large pieces."""
    from hashlib import sha256 as make

    digest = make()
    with path.open("rb", buffering=0) as stream:
        buffer = memoryview(bytearray(_CHUNK_BYTES))
        while count := stream.readinto(buffer):
            digest.update(buffer[:count])
    return digest.hexdigest()


@cache
def _python_sha256() -> Callable[[Any], Any]:
    """Return Python's own: that of OpenSSL is faster, but its library takes longer to open than a manifest to hash."""
    if "hashlib" in sys.modules:
        from hashlib import sha256 as openssl

        return openssl
    try:
        from _sha2 import sha256 as found  # type: ignore[import-not-found,unused-ignore] # from Python 3.12 on
    except ImportError:
        try:
            from _sha256 import sha256 as found  # type: ignore[import-not-found,no-redef,unused-ignore]
        except ImportError:
            from hashlib import sha256 as found
    make: Callable[[Any], Any] = found
    return make
