"""Files and directories that appear whole or not at all.

A writer works on a hidden sibling, which takes the final name in one step once its bytes are on disk: `unfinished` says
whose those siblings are. A crash leaves the old content, or nothing, and what else it leaves the next writer removes.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from glowplug.core.errors import OutputExistsError, StorageError

from . import refusals, unfinished

Replaceable = Callable[[Path], bool]  # whether all that a folder holds may go

_NOREPLACE, _EXCHANGE = 1, 2  # flags of renameat2
_AT_FDCWD = -100
_NO_SUCH_RENAME = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP)  # an old kernel, or a file system that cannot do it


def refuse_existing(path: Path, *, force: bool, replaceable: Replaceable | None = None) -> None:
    """Raise `OutputExistsError` when `path` exists and `force` is off.

    A device, a pipe or a socket is never replaced: whoever names /dev/null or /dev/stdout does not mean that. A folder
    is only where `replaceable` knows what is in it: whoever names a home or a project does not mean that either.
    """
    if not os.path.lexists(path):
        return
    with contextlib.suppress(OSError):  # a link that leads nowhere may be replaced
        if stat.S_IFMT(os.stat(path).st_mode) not in (stat.S_IFREG, stat.S_IFDIR):
            raise OutputExistsError("the output is a device, a pipe or a socket", seen=path, remedy="name a file")
    if path.is_dir() and not path.is_symlink():  # of a link, only the link is replaced
        if replaceable is None:
            raise OutputExistsError("the output is a folder", seen=path, remedy="name a file")
        if not replaceable(path):
            raise OutputExistsError(
                "the output is a folder with other things in it, which are never replaced",
                seen=path,
                remedy="name another place, or remove it yourself",
            )
    if not force:
        raise OutputExistsError("the output exists already", seen=path, remedy="pass --force to replace it")


def is_empty(folder: Path) -> bool:
    """Say whether nothing is in a folder."""
    return next(folder.iterdir(), None) is None


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
        unfinished.sweep(str(path.parent), path.name)
        with unfinished.new_file(str(path), mode=mode, sync=True) as stream:
            stream.write(data)
        sync_directory(path.parent)
    except OSError as error:
        raise _cannot_write(path, error) from error


@contextlib.contextmanager
def new_directory(path: Path, *, force: bool = False, replaceable: Replaceable = is_empty) -> Iterator[Path]:
    """Yield a hidden sibling directory that becomes `path` when the block ends well, and vanishes when it does not.

    With `force`, what was there is replaced, a folder only if it is `replaceable`: the two change places in one step,
    so that there is no moment without either, and a reader that has the old one open keeps it.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        restore_displaced(path)
        refuse_existing(path, force=force, replaceable=replaceable)
        unfinished.sweep(str(path.parent), path.name)
        hidden, lock = unfinished.new_folder(str(path))
    except OSError as error:
        raise _cannot_write(path.parent, error) from error
    try:
        yield Path(hidden)
        _publish(hidden, path, force=force, replaceable=replaceable)
    except BaseException:
        unfinished.remove(hidden)
        raise
    finally:
        os.close(lock)


def restore_displaced(path: Path) -> bool:
    """Give back its name to a directory that a killed writer had moved aside; say whether there was one.

    Where the other one has taken the name, what was moved aside is removed.
    """
    left = unfinished.leftovers(str(path.parent), unfinished.DISPLACED, path.name)
    for hidden in left:
        if not os.path.lexists(path):
            with contextlib.suppress(OSError):
                _rename(hidden, path, _NOREPLACE)
                return True
        unfinished.remove(hidden)
    return False


def _publish(hidden: str, path: Path, *, force: bool, replaceable: Replaceable) -> None:
    try:
        Path(hidden).chmod(0o777 & ~_umask())
        while True:
            try:
                _rename(hidden, path, _NOREPLACE)
                break
            except FileExistsError:
                refuse_existing(path, force=force, replaceable=replaceable)
            with contextlib.suppress(FileNotFoundError):  # it went away meanwhile
                _replace(hidden, path)
                break
        sync_directory(path.parent)
    except OSError as error:
        raise _cannot_write(path, error) from error


def _replace(hidden: str, path: Path) -> None:
    """Put the directory `hidden` in the place of what stands at `path`, and remove that."""
    try:
        _rename(hidden, path, _EXCHANGE)
    except OSError as error:
        if error.errno not in _NO_SUCH_RENAME:
            raise
        _replace_in_two_steps(hidden, path)
    else:
        unfinished.remove(hidden)


def _replace_in_two_steps(hidden: str, path: Path) -> None:
    """Move the old one aside first. It is locked meanwhile: whoever finds it without a lock gives it its name back."""
    aside = unfinished.hidden_name(str(path), unfinished.DISPLACED)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        path.rename(aside)
        try:
            Path(hidden).rename(path)
        except BaseException:
            Path(aside).rename(path)
            raise
        unfinished.remove(aside)
    finally:
        os.close(descriptor)


def _rename(source: str, target: Path, flags: int) -> None:
    """Rename without replacing, or exchange, in one step; without replacing also where the kernel cannot do that."""
    import ctypes

    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is not None:
        if call(_AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), flags) == 0:
            return
        code = ctypes.get_errno()
    else:
        code = errno.ENOSYS
    if flags != _NOREPLACE or code not in _NO_SUCH_RENAME:
        raise OSError(code, os.strerror(code), str(target))
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
    Path(source).rename(target)


def _cannot_write(path: Path, error: OSError) -> StorageError:
    seen = f"{path} ({error.strerror or error})"
    return StorageError("cannot write here", seen=seen, remedy=refusals.remedy(error))


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
