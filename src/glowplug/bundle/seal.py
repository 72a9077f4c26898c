"""Says whether this user packed a bundle: a keyed hash of its manifest, with a key that only this user can read.

The seal travels with the bundle but proves something only on machines that have the key.
"""

from __future__ import annotations

import hmac
import os
import secrets
from pathlib import Path

from glowplug.core.files import write_file

from . import layout

_KEY_BYTES = 32


def seal(directory: Path) -> None:
    """Seal the bundle in `directory` as packed by this user."""
    write_file(directory / layout.SEAL, _tag(directory, _key(create=True)))


def is_sealed_here(directory: Path) -> bool:
    """Say whether this user packed the bundle on a machine with the same key."""
    try:
        key = _key(create=False)
        stored = (directory / layout.SEAL).read_bytes()
    except OSError:
        return False
    return hmac.compare_digest(stored, _tag(directory, key))


def _tag(directory: Path, key: bytes) -> bytes:
    manifest = (directory / layout.MANIFEST).read_bytes()
    return hmac.new(key, manifest, "sha256").hexdigest().encode()


def _key(*, create: bool) -> bytes:
    base = os.environ.get("XDG_STATE_HOME") or Path("~/.local/state").expanduser()
    path = Path(base) / "glowplug" / "pack-key"
    try:
        key = path.read_bytes()
        status = path.stat()
        if len(key) == _KEY_BYTES and status.st_uid == os.geteuid() and not status.st_mode & 0o077:
            return key
    except FileNotFoundError:
        pass
    if not create:
        raise FileNotFoundError(path)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    key = secrets.token_bytes(_KEY_BYTES)
    write_file(path, key, mode=0o600)
    return key
