"""Where standbys live: one directory of the user's own, with a socket, two locks and a log for each.

Whoever can write here could pose as a standby, so the directory must belong to this user and to nobody else. It is
opened once, checked through the descriptor, and reached through it, so that it cannot be exchanged in between. In a
place that others can write to, somebody may have been there first: then it is not used, and the next place is.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat

from glowplug.core.errors import StandbyError

VARIABLE = "GLOWPLUG_STANDBY_DIR"
SUFFIXES = (".sock", ".lock", ".turn", ".log")


class Place:
    """An open directory. `passed_over` says which better places could not be used, and why; mostly it is empty."""

    __slots__ = ("descriptor", "passed_over", "path")

    def __init__(self, path: str, descriptor: int, passed_over: str) -> None:
        self.path = path
        self.descriptor = descriptor
        self.passed_over = passed_over

    def through(self, name: str) -> str:
        """Return a short path to `name` in the directory (a socket's path has 108 bytes at most)."""
        return f"/proc/self/fd/{self.descriptor}/{name}"

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.descriptor)

    def lock(self, name: str, *, wait_until: float = 0.0) -> int | None:
        """Return a descriptor that holds the lock `name`; None if somebody else holds it until the monotonic clock
        reaches `wait_until`.

        The kernel releases a lock with its last holder. Its file may be removed by whoever holds it, so a lock counts
        only if the file is still the one of that name.
        """
        import time

        while True:
            descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600, dir_fd=self.descriptor)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if self._is(name, descriptor):
                    return descriptor
            except BlockingIOError:
                if time.monotonic() >= wait_until:
                    os.close(descriptor)
                    return None
                time.sleep(0.02)  # the kernel has no lock that is waited for until a moment
            os.close(descriptor)

    def sweep(self) -> None:
        """Remove what killed standbys left: the files of each name whose locks nobody holds."""
        entries = {entry for entry in os.listdir(self.descriptor) if entry.endswith(SUFFIXES)}
        for name in {os.path.splitext(entry)[0] for entry in entries}:
            turn = self.lock(f"{name}.turn")  # first this one, as those do who start a standby
            lock = self.lock(f"{name}.lock") if turn is not None else None
            if lock is not None:
                for suffix in SUFFIXES:
                    self.remove(f"{name}{suffix}")
            for descriptor in (lock, turn):
                if descriptor is not None:
                    os.close(descriptor)

    def close(self) -> None:
        """Give the descriptor up."""
        os.close(self.descriptor)

    def _is(self, name: str, descriptor: int) -> bool:
        try:
            there = os.stat(name, dir_fd=self.descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return os.path.samestat(there, os.fstat(descriptor))


def candidates() -> list[str]:
    """Return the places in the order in which they are tried."""
    chosen = os.environ.get(VARIABLE)
    if chosen:
        return [chosen]
    user = os.getuid()
    runtime = [path for path in (os.environ.get("XDG_RUNTIME_DIR"), f"/run/user/{user}") if path and _is_ours(path)]
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    shared = [f"/tmp/glowplug-{user}", f"/dev/shm/glowplug-{user}", f"/var/tmp/glowplug-{user}"]
    return [*(os.path.join(path, "glowplug") for path in runtime), *shared, os.path.join(home, "glowplug", "standby")]


def open_place(*, create: bool) -> Place | None:
    """Open the first place that is this user's alone, or None where it does not exist and `create` is off.

    Raises `StandbyError` if there is none, or the one that was chosen by a variable is not.
    """
    passed_over: list[str] = []
    for path in candidates():
        if create:
            with contextlib.suppress(OSError):  # what is wrong is found below
                os.makedirs(path, 0o700, exist_ok=True)
        try:
            descriptor = _open(path)
        except FileNotFoundError:
            if create:
                passed_over.append(f"{path} cannot be made")
            elif os.path.isdir(os.path.dirname(path)):
                return None  # whoever starts one makes it here
            continue
        except OSError as error:
            passed_over.append(f"{path} is not used: {error.strerror}")
            continue
        problem = _problem(os.fstat(descriptor))
        if problem is None:
            return Place(path, descriptor, "; ".join(passed_over))
        os.close(descriptor)
        passed_over.append(f"{path} is not used: {problem}")
    if not passed_over:
        return None
    raise StandbyError(
        "there is no safe directory for a standby",
        seen="; ".join(passed_over),
        remedy=f"set {VARIABLE} to a directory of mode 700 that you own",
    )


def _open(path: str) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _problem(status: os.stat_result) -> str | None:
    if status.st_uid != os.getuid():
        return f"it belongs to user {status.st_uid}"
    mode = stat.S_IMODE(status.st_mode)
    if mode & 0o077:
        return f"it is open to others (mode {mode:o})"
    if mode & 0o700 != 0o700:
        return f"its owner cannot use it (mode {mode:o})"
    return None


def _is_ours(path: str) -> bool:
    try:
        status = os.stat(path)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and _problem(status) is None
