"""Files and directories that appear whole or not at all.

A writer works on a hidden sibling, which is renamed onto the final name once its bytes are on disk. A crash leaves
the old content, or nothing, plus a sibling that `remove_stale_siblings` clears on the next write.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from .errors import OutputExistsError, StorageError

_MARK = ".glowplug-partial-"


def refuse_existing(path: Path, *, force: bool) -> None:
    """Raise `OutputExistsError` when `path` exists and `force` is off."""
    if not force and (path.exists() or path.is_symlink()):
        raise OutputExistsError("the output exists already", seen=path, remedy="pass --force to replace it")


def sync_directory(path: Path) -> None:
    """Make the directory's entries durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_file(path: Path, data: bytes, *, force: bool = True, mode: int = 0o666) -> None:
    """Write `data` to `path` through a sibling temporary file, fsync and rename. `mode` is subject to the umask."""
    refuse_existing(path, force=force)
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}{_MARK}", dir=path.parent)
    except OSError as error:
        raise StorageError("cannot write here", seen=f"{path.parent} ({error.strerror})") from error
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(mode & ~_umask())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


@contextlib.contextmanager
def new_directory(path: Path, *, force: bool = False) -> Iterator[Path]:
    """Yield a hidden sibling directory that becomes `path` when the block ends well, and vanishes when it does not.

    With `force`, a directory that was there is replaced: it is renamed away first, so a reader that has it mapped
    keeps its files, and a crash in between leaves it under its hidden name rather than losing it.
    """
    refuse_existing(path, force=force)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_stale_siblings(path)
        temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}{_MARK}{os.getpid()}-", dir=path.parent))
    except OSError as error:
        raise StorageError("cannot write here", seen=f"{path.parent} ({error.strerror})") from error
    try:
        yield temporary
        temporary.chmod(0o777 & ~_umask())
        _replace_directory(temporary, path, force=force)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    sync_directory(path.parent)


def remove_stale_siblings(path: Path) -> None:
    """Remove the partial outputs for `path` whose writers are no longer alive."""
    prefix = f".{path.name}{_MARK}"
    for sibling in path.parent.glob(f"{prefix}*-*"):
        owner = sibling.name[len(prefix) :].partition("-")[0]
        if owner.isdigit() and not Path("/proc", owner).exists() and Path("/proc/self").exists():
            shutil.rmtree(sibling, ignore_errors=True)


def _replace_directory(temporary: Path, path: Path, *, force: bool) -> None:
    refuse_existing(path, force=force)
    if not path.exists():
        temporary.rename(path)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{path.name}{_MARK}{os.getpid()}-", dir=path.parent)) / "old"
    path.rename(old)
    try:
        temporary.rename(path)
    except BaseException:
        old.rename(path)
        raise
    finally:
        if path.exists():
            shutil.rmtree(old.parent, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
