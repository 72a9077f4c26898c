"""Notices a fork after TensorFlow's threads were started: in the child they are missing, and a call waits for them."""

from __future__ import annotations

import os

from glowplug.core.errors import ForkedError

_started_in: list[int] = []  # the process that made the first graph


def note_start() -> None:
    """Remember that this process has TensorFlow's threads; raise `ForkedError` if its parent had."""
    if _started_in:
        check_not_forked()
    else:
        _started_in.append(os.getpid())


def check_not_forked() -> None:
    """Raise `ForkedError` in a fork of the process that started TensorFlow."""
    if is_forked():
        raise ForkedError(
            "TensorFlow does not survive a fork",
            seen=f"started in process {_started_in[0]}, used in {os.getpid()}",
            remedy="load the model after the fork, or start processes with multiprocessing's `spawn` method",
        )


def is_forked() -> bool:
    """Say whether this process is a fork of the one that started TensorFlow."""
    return bool(_started_in) and _started_in[0] != os.getpid()
