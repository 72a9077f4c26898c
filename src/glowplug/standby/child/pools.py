"""Keeps OpenBLAS's threads out of the standby, and gives a child as many as it would have chosen itself.

OpenBLAS starts its pool while numpy is imported, ends it before a fork and starts it again when a product first needs
it. Until they go to sleep its threads spin, so a child that has no use for them shall not start them.
"""

from __future__ import annotations

import ctypes
import os

from glowplug.standby import key

_SETTERS = (
    "scipy_openblas_set_num_threads64_",
    "scipy_openblas_set_num_threads",
    "openblas_set_num_threads64_",
    "openblas_set_num_threads",
)


class _Prepared:
    """How many threads the pools of this process have been told to use."""

    count = 0


def end() -> None:
    """End the threads for now, through the handler that OpenBLAS has for forks. Runs in the standby."""
    _Prepared.count = _wanted()
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def restore() -> None:
    """Let every OpenBLAS use as many threads as it would have chosen for this caller. Runs in the child."""
    wanted = _wanted()
    if wanted == _Prepared.count:
        return
    for path in _libraries():
        library = ctypes.CDLL(path)
        for name in _SETTERS:
            setter = getattr(library, name, None)
            if setter is not None:
                setter(wanted)
                break


def _wanted() -> int:
    for name in key.THREAD_COUNTS:
        value = os.environ.get(name, "").partition(",")[0].strip()
        if value.isdigit() and int(value) > 0:
            return int(value)
    return len(os.sched_getaffinity(0))


def _libraries() -> set[str]:
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as stream:
        return {line.split(None, 5)[5].rstrip("\n") for line in stream if "openblas" in line}
