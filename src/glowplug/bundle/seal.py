"""Says whether this user packed a bundle: a keyed hash of its manifest, with a key that only this user can read.

The seal travels with the bundle but proves something only on machines that have the key. TensorFlow opens the files of
a SavedModel by their names, after they were checked. So a seal counts only as long as nobody else can change the
SavedModel: its folders and files belong to this user or to root, others cannot write to them, and all were packed.
"""

from __future__ import annotations

import hmac
import os
import secrets
import stat
from io import FileIO
from pathlib import Path

from glowplug.core.disk.digest import sha256
from glowplug.core.disk.files import write_file
from glowplug.core.disk.regular_files import OpenFolder, open_regular
from glowplug.core.errors import StorageError

from . import layout
from .reader import Bundle
from .schema import MAX_MANIFEST_BYTES

_KEY_BYTES = 32
_SEAL_BYTES = 64
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


def seal(directory: Path) -> None:
    """Seal the bundle in `directory` as packed by this user; a user who has no place for a key seals nothing."""
    try:
        key = _key() or _new_key()
    except (OSError, StorageError):
        return
    saved_model = directory / layout.SAVED_MODEL
    for path in [saved_model, *saved_model.rglob("*")] if saved_model.exists() else ():
        path.chmod(path.stat().st_mode & ~_OTHERS_MAY_WRITE)
    write_file(directory / layout.SEAL, _tag((directory / layout.MANIFEST).read_bytes(), key))


def is_sealed_here(bundle: Bundle) -> bool:
    """Say whether this user packed the bundle on a machine with the same key, and nobody else can change it."""
    return not is_packed_elsewhere(bundle) and not (
        bundle.manifest.engine == "savedmodel" and distrust(bundle, bundle.open_folder(layout.SAVED_MODEL))
    )


def distrust(bundle: Bundle, saved_model: OpenFolder) -> str:
    """Return why the seal does not vouch for this folder of the bundle; nothing where it does."""
    if is_packed_elsewhere(bundle):
        return "you did not pack this one"
    root = saved_model.path
    for folder, folders, names in os.walk(root):
        relative = layout.SAVED_MODEL + folder.removeprefix(root).lstrip("/")
        for name in (*names, *folders, ""):
            status = os.lstat(os.path.join(folder, name))  # noqa: PTH118 - the last one is the folder itself
            path = f"{relative.rstrip('/')}/{name}".rstrip("/")
            if name and not stat.S_ISDIR(status.st_mode) and path not in bundle.manifest.files:
                return f"{path} was not packed with it"
            if stat.S_ISLNK(status.st_mode):
                return f"{path} is a link"
            if status.st_uid not in (os.geteuid(), 0) or status.st_mode & _OTHERS_MAY_WRITE:
                return f"other users can change {path}"
    return ""


def is_packed_elsewhere(bundle: Bundle) -> bool:
    """Say whether the bundle has no seal, or not one of this user's."""
    try:
        key = _key()
        with FileIO(bundle.folder.open(layout.SEAL)) as stream:
            stored = stream.read(_SEAL_BYTES + 1)
        with FileIO(bundle.folder.open(layout.MANIFEST)) as stream:
            manifest = stream.read(MAX_MANIFEST_BYTES + 1)
    except OSError:
        return True
    same = sha256(manifest) == bundle.manifest_digest
    return key is None or not same or not hmac.compare_digest(stored, _tag(manifest, key))


def _tag(manifest: bytes, key: bytes) -> bytes:
    return hmac.new(key, manifest, "sha256").hexdigest().encode()


def _key() -> bytes | None:
    """Return this user's key, None where there is none that nobody else could know."""
    try:
        with FileIO(open_regular(_key_path())) as stream:
            status = os.fstat(stream.fileno())
            key = stream.read(_KEY_BYTES + 1)
    except FileNotFoundError:
        return None
    private = status.st_uid == os.geteuid() and not status.st_mode & 0o077
    return key if private and len(key) == _KEY_BYTES else None


def _new_key() -> bytes:
    path = _key_path()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    key = secrets.token_bytes(_KEY_BYTES)
    write_file(path, key, mode=0o600)
    return key


def _key_path() -> Path:
    base = os.environ.get("XDG_STATE_HOME", "")
    if not base.startswith("/"):  # the specification has a relative one ignored
        base = os.path.expanduser("~/.local/state")  # noqa: PTH111 - it stays as it is where there is no home
    if not base.startswith("/"):
        raise FileNotFoundError("this user has no home")
    return Path(base, "glowplug", "pack-key")
