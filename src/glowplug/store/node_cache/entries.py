"""The entries of a node cache: whole directories by digest, mapped where they lie.

An entry appears by a rename when every chunk of it has been checked. Nothing is synced then, which would hold up a
start; so an entry counts unseen only until the machine is booted again, or once its bytes are known to be on the disk.
After that it is read and checked before it is used. Whoever uses an entry holds its lease, and it is not removed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from glowplug.core.disk.digest import sha256
from glowplug.core.disk.files import sync_directory
from glowplug.core.disk.unfinished import new_file, remove
from glowplug.core.errors import DamagedObjectError, StorageError
from glowplug.store import tree as trees
from glowplug.store.tree import Tree

from .folder import Folder, cannot_write
from .guess import last_from
from .locks import Lock, try_exclusive, try_shared, wait_shared
from .place import CONTENT, ENTRIES, LEASE, ORIGIN

JOURNAL = "journal"  # of a fetch that is not finished
_TREE, _BOOT, _SYNCED = "tree.json", "boot", "synced"
_PROBED_S = 5.0  # for so long at most others find out whether an entry is used, for which they have it alone
_SETTLED_S = 60.0  # the kernel writes back what is half this old: to sync then costs nothing


class Held:
    """A directory, or a file, of the node cache. Nobody removes it until it is released.

    `vouched` finds out whether a key that is trusted vouches for it; the origin may have to be asked.
    """

    __slots__ = ("_lock", "_signed", "digest", "notes", "path", "vouched")

    def __init__(self, path: Path, digest: str, lock: Lock, notes: tuple[str, ...] = ()) -> None:
        self.path = path
        self.digest = digest
        self.notes = notes
        self.vouched: Callable[[], bool] = lambda: False
        self._signed: bool | None = None
        self._lock = lock

    @property
    def signed(self) -> bool:
        """Whether a key that is trusted vouches for it."""
        if self._signed is None:
            self._signed = self.vouched()
        return self._signed

    def release(self) -> None:
        """Allow it to be removed. Doing so twice is harmless."""
        self._lock.release()

    def __del__(self) -> None:
        self.release()

    def __enter__(self) -> Held:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


@dataclass(frozen=True, slots=True)
class Entry:
    """What is known about an entry. `used_s` counts from the epoch."""

    digest: str
    origin: str
    size: int
    used_s: float


def use(folder: Folder, digest: str) -> Held | None:
    """Return an entry for use, or None where there is none; raise `DamagedObjectError` for one that is not whole."""
    place = folder.entry(digest)
    try:
        lock = wait_shared(place / LEASE, _PROBED_S)
    except OSError as error:
        raise StorageError(
            "an entry of the node cache cannot be used", seen=f"{place} ({error.strerror})", remedy=f"remove {place}"
        ) from error
    if lock is None:
        return None
    try:
        tree = read_tree(place)
        _check_sizes(place, tree)
        _check_since_boot(folder, place, tree)
        if folder.writable:
            with contextlib.suppress(OSError):
                os.utime(place / LEASE)
    except BaseException:
        lock.release()
        raise
    return _held(place, tree, lock)


def _held(place: Path, tree: Tree, lock: Lock) -> Held:
    content = place / CONTENT
    return Held(content / tree.files[0].path if tree.single else content, place.name, lock)


def use_whole(folder: Folder, digest: str | None, notes: list[str]) -> Held | None:
    """Return an entry that is there and whole. A damaged one is reported in `notes`, and is to be fetched again."""
    if digest is None:
        return None
    try:
        return use(folder, digest)
    except DamagedObjectError as error:
        text = f"an entry of the node cache was damaged and is fetched again: {error.what}"
        if text not in notes:
            notes.append(text)
        return None


def names_of_last(folder: Folder, url: str) -> list[str]:
    """Return the files of the entry that last came from a URL, which may be another now."""
    last = last_from(str(folder.root / ENTRIES), url)
    try:
        return [one.path for one in read_tree(folder.entry(last)).files] if last is not None else []
    except DamagedObjectError:
        return []


def publish(folder: Folder, partial: Path, description: bytes, origin: str) -> Held:
    """Make an entry of a fetched directory, whose chunks have been checked. It is in use from its first moment on."""
    digest = sha256(description)
    place = folder.entry(digest)
    try:
        held = use_whole(folder, digest, [])
        if held is not None:  # the same bytes came from elsewhere
            remove(str(partial))
            return held
        for name, data in ((_TREE, description), (ORIGIN, origin.encode()), (_BOOT, boot_id()), (LEASE, b"")):
            (partial / name).write_bytes(data)
        lock = try_shared(partial / LEASE)
        if lock is None:
            raise FileNotFoundError(errno.ENOENT, "it was removed while it was fetched")
        folder.part(ENTRIES)
        _discard(folder, place)  # one that was damaged: whoever maps its files keeps them
        try:
            partial.rename(place)
        except OSError:
            lock.release()
            held = use_whole(folder, digest, [])
            if held is None:
                raise
            remove(str(partial))  # where there are no locks, another process was first
            return held
        (place / JOURNAL).unlink(missing_ok=True)
    except OSError as error:
        raise cannot_write(place, error) from error
    return _held(place, trees.parse(description, str(place)), lock)


def read_signature(folder: Folder, digest: str, name: str) -> bytes | None:
    """Return a signature that was kept with an entry."""
    try:
        return (folder.entry(digest) / name.replace("/", "-")).read_bytes()
    except OSError:
        return None


def keep_signature(folder: Folder, digest: str, name: str, data: bytes) -> None:
    """Keep a signature with an entry, where that can be done, so that the origin need not be asked again."""
    with contextlib.suppress(OSError), new_file(str(folder.entry(digest) / name.replace("/", "-"))) as stream:
        stream.write(data)


def doubt(folder: Folder, digest: str) -> None:
    """Have an entry read and checked before it is used again."""
    for name in (_SYNCED, _BOOT):
        with contextlib.suppress(OSError):
            (folder.entry(digest) / name).unlink()


def entries(folder: Folder) -> list[Entry]:
    """Return all entries, last used first; what cannot be read is described as far as that is possible."""
    found = []
    for place in _places(folder):
        size = content_bytes(place, "st_size")
        origin, used = "", 0.0
        with contextlib.suppress(OSError):
            origin = (place / ORIGIN).read_text(encoding="utf-8", errors="replace")
            used = (place / LEASE).stat().st_mtime
        found.append(Entry(place.name, origin, size, used))
    return sorted(found, key=lambda one: -one.used_s)


def content_bytes(place: Path, field: Literal["st_size", "st_blocks"]) -> int:
    """Return the sum of one field over the files of an entry, finished or not, without what is removed meanwhile."""
    total = 0
    for top, _, names in os.walk(place / CONTENT):
        for name in names:
            with contextlib.suppress(OSError):
                total += getattr(Path(top, name).lstat(), field)
    return total


def remove_unused(folder: Folder, digest: str) -> bool:
    """Remove an entry that nobody uses; say whether it was removed. Without locks nobody knows, and it stays."""
    place = folder.entry(digest)
    try:
        lock = try_exclusive(place / LEASE)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise cannot_write(place, error) from error
    if lock is None:
        return False
    with lock:
        if lock.real:
            _discard(folder, place)
        return lock.real


def is_used(folder: Folder, digest: str) -> bool:
    """Say whether a live process uses an entry, or may use it where there are no locks."""
    try:
        lock = try_exclusive(folder.entry(digest) / LEASE)
    except OSError:
        return False
    if lock is None:
        return True
    with lock:
        return not lock.real


def verify(folder: Folder, digest: str) -> list[str]:
    """Read every byte of an entry; return what is wrong with it, in words. One that is gone has no faults."""
    place = folder.entry(digest)
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):
            lock = wait_shared(place / LEASE, _PROBED_S)
            if lock is not None:
                held.enter_context(lock)
        if not place.exists():
            return []
        try:
            tree = read_tree(place)
            _check_sizes(place, tree)
        except DamagedObjectError as error:
            return [str(error.what)]
        return list(_faults(place, tree))


def mark_synced(folder: Folder, digest: str) -> None:
    """Wait until the bytes of an entry are on the disk, and note it."""
    place = folder.entry(digest)
    with contextlib.suppress(OSError, DamagedObjectError):
        _sync(place, read_tree(place))


def read_tree(place: Path) -> Tree:
    """Return the description of an entry."""
    try:
        data = (place / _TREE).read_bytes()
    except OSError as error:
        raise DamagedObjectError("an entry of the node cache has no description", seen=place) from error
    if sha256(data) != place.name:
        raise DamagedObjectError("the description of an entry of the node cache is another", seen=place)
    return trees.parse(data, str(place))


def chunk_places(folder: Folder) -> dict[str, tuple[Path, int]]:
    """Return where the entries have which chunks. None of them has been checked since."""
    found: dict[str, tuple[Path, int]] = {}
    for place in _places(folder):
        with contextlib.suppress(DamagedObjectError):
            for one in read_tree(place).files:
                for offset, chunk in one.spans():
                    found[chunk.digest] = (place / CONTENT / one.path, offset)
    return found


def _places(folder: Folder) -> list[Path]:
    try:
        return sorted(path for path in (folder.root / ENTRIES).iterdir() if path.is_dir())
    except OSError:
        return []


def _discard(folder: Folder, place: Path) -> None:
    """Take an entry away in one step, then remove its files."""
    aside = folder.trash()
    with contextlib.suppress(FileNotFoundError):
        place.rename(aside)
        remove(str(aside))


def _check_sizes(place: Path, tree: Tree) -> None:
    for one in tree.files:
        try:
            found = (place / CONTENT / one.path).lstat()
        except OSError as error:
            raise DamagedObjectError(f"{one.path} is missing in the node cache", seen=place) from error
        if not stat.S_ISREG(found.st_mode):
            raise DamagedObjectError(f"{one.path} is no ordinary file in the node cache", seen=place)
        if found.st_size != one.size:
            raise DamagedObjectError(
                f"{one.path} has {found.st_size} bytes in place of {one.size} in the node cache", seen=place
            )


def _check_since_boot(folder: Folder, place: Path, tree: Tree) -> None:
    """Check the bytes of an entry that may have been lost when the machine went down before they were written."""
    if (place / _SYNCED).exists():
        return
    try:
        same_boot = (place / _BOOT).read_bytes() == boot_id()
        age_s = time.time() - (place / _BOOT).stat().st_mtime
    except OSError:
        same_boot, age_s = False, 0.0
    if not same_boot:
        faults = list(_faults(place, tree))
        if faults:
            raise DamagedObjectError(faults[0], seen=place)
    if folder.writable and (not same_boot or age_s > _SETTLED_S):
        with contextlib.suppress(OSError):
            _sync(place, tree)


def _sync(place: Path, tree: Tree) -> None:
    for path in [place / _TREE, *(place / CONTENT / one.path for one in tree.files)]:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    for top in (place / CONTENT, *(path for path in (place / CONTENT).rglob("*") if path.is_dir()), place):
        sync_directory(top)
    (place / _SYNCED).touch(0o600)


def _faults(place: Path, tree: Tree) -> Iterator[str]:
    for one in tree.files:
        try:
            descriptor = os.open(place / CONTENT / one.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError as error:
            yield f"{one.path} cannot be read ({error.strerror})"
            continue
        try:
            for offset, chunk in one.spans():
                if sha256(os.pread(descriptor, chunk.size, offset)) != chunk.digest:
                    yield f"{one.path} has other bytes than were fetched, between {offset} and {offset + chunk.size}"
        except OSError as error:
            yield f"{one.path} cannot be read ({error.strerror})"
        finally:
            os.close(descriptor)


def boot_id() -> bytes:
    """Return what is another after each boot; where the kernel does not tell, another each time."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_bytes()
    except OSError:
        return os.urandom(16)
