"""Turns of the processes of one machine at a folder, which the kernel ends with the process that has one."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

_LONGEST_S = 30.0  # then whoever has the turn is taken for stuck, and what it would have saved is done twice
_BETWEEN_S = 0.01


@contextlib.contextmanager
def in_turn(folder: Path | None) -> Iterator[None]:
    """Let one process at a time do something with a folder. Where there are no locks, all do it."""
    try:
        descriptor = None if folder is None else os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        descriptor = None
    try:
        if descriptor is not None:
            _wait(descriptor)
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _wait(descriptor: int) -> None:
    until = time.monotonic() + _LONGEST_S
    while time.monotonic() < until:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_BETWEEN_S)
        except OSError:
            return
        else:
            return
