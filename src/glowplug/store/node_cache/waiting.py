"""One fetch of an entry at a time on a host: the others wait for it, and one of them goes on if its process dies.

A fetch that failed tells those who were waiting why, so that they do not try the same one after another.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import time
from collections.abc import Callable

from glowplug.core import errors
from glowplug.core.disk.unfinished import new_file
from glowplug.core.errors import StorageError, UnreachableError

from .entries import Held, boot_id
from .folder import Folder, cannot_write
from .locks import Lock, try_exclusive

_STALLED_S = 900.0  # without a byte more, whoever fetches is taken for stuck


def wait_for(folder: Folder, key: str, find: Callable[[], Held | None], show: Callable[[], int]) -> Held | Lock:
    """Wait until the entry is there, and return it, or until this process may fetch it, and return the lock for that.

    `find` looks for the entry; `show` shows how far the other process is and returns it.
    """
    began = time.monotonic()
    moved, done = began, -1
    try:
        path = folder.part("locks") / key
        while True:
            lock = try_exclusive(path)
            if lock is not None:
                with contextlib.ExitStack() as unless_it_is_ours:
                    unless_it_is_ours.enter_context(lock)
                    held = find()  # it may have come while we asked
                    if held is not None:
                        return held
                    _raise_failure(folder, key, began)
                    unless_it_is_ours.pop_all()
                os.pwrite(lock.descriptor, f"{os.getpid():<10}\n".encode(), 0)
                return lock
            _raise_failure(folder, key, began)
            now_done, now = show(), time.monotonic()
            if now_done != done:
                moved, done = now, now_done
            elif now - moved > _STALLED_S:
                raise UnreachableError(
                    "another process fetches this and makes no progress",
                    seen=f"process {path.read_text(errors='replace').strip()[:20]} holds {path}",
                    remedy="end that process, or let it go on",
                )
            time.sleep(random.uniform(0.005, 0.03))
    except OSError as error:
        raise cannot_write(folder.root, error) from error


def leave_failure(folder: Folder, key: str, error: StorageError) -> None:
    """Tell those who wait why the entry cannot be fetched."""
    record = {
        "boot": boot_id().hex(),
        "at_s": time.monotonic(),
        "class": type(error).__name__,
        "what": error.what,
        "seen": None if error.seen is None else str(error.seen),
        "remedy": error.remedy,
    }
    with contextlib.suppress(OSError, StorageError), new_file(str(folder.part("failed") / key), mode=0o600) as stream:
        stream.write(json.dumps(record).encode())


def _raise_failure(folder: Folder, key: str, since_s: float) -> None:
    """Raise what made the last one give up, if that was while this process waited."""
    try:
        record = json.loads((folder.root / "failed" / key).read_bytes())
        if record["boot"] != boot_id().hex() or record["at_s"] < since_s:
            return
        kind = getattr(errors, record["class"])
        failure: StorageError = kind(record["what"], seen=record["seen"], remedy=record["remedy"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return
    if isinstance(failure, StorageError):
        raise failure
