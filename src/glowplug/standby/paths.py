"""Where standbys live: one directory of the user's own, with a socket and a log for each.

Whoever can write here could pose as a standby, so the directory must belong to this user and to nobody else. It is
opened once, checked through the descriptor, and reached through it, so that it cannot be exchanged in between.
"""

from __future__ import annotations

import contextlib
import os
import stat

from glowplug.core.errors import StandbyError

VARIABLE = "GLOWPLUG_STANDBY_DIR"


def location() -> str:
    """Return the directory's path: the user's runtime directory, or one of ours below /tmp."""
    chosen = os.environ.get(VARIABLE)
    if chosen:
        return chosen
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and os.path.isdir(runtime):
        return os.path.join(runtime, "glowplug")
    return f"/tmp/glowplug-{os.getuid()}"


def open_directory(*, create: bool) -> int:
    """Return a descriptor of the directory, or raise `StandbyError` if others could write there.

    Raises `FileNotFoundError` where it does not exist and `create` is off.
    """
    path = location()
    if create:
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    status = os.fstat(descriptor)
    if status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) & 0o077:
        os.close(descriptor)
        raise StandbyError(
            "the directory of the standbys is open to others",
            seen=f"{path} (owner {status.st_uid}, mode {stat.S_IMODE(status.st_mode):o})",
            remedy=f"remove it, or set {VARIABLE} to a directory of mode 700 that you own",
        )
    return descriptor


def through(directory: int, name: str) -> str:
    """Return a short path to `name` in the open directory (a socket's path has 108 bytes at most)."""
    return f"/proc/self/fd/{directory}/{name}"
