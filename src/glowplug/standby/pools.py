"""Gives OpenBLAS back the threads that a standby kept it from starting. Runs in the child."""

from __future__ import annotations

import ctypes
import os

from . import key

_SETTERS = (
    "scipy_openblas_set_num_threads64_",
    "scipy_openblas_set_num_threads",
    "openblas_set_num_threads64_",
    "openblas_set_num_threads",
)


def restore() -> None:
    """Let every OpenBLAS of this process use as many threads as it would have chosen itself."""
    wanted = _wanted()
    if wanted == 1:
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
