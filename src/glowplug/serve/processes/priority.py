"""A lower priority and fewer processors: for the length of a block, as far as a process may return, or for good."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
from collections.abc import Iterator
from pathlib import Path

_NICE = 10
_IOPRIO_SET = {"x86_64": 251, "aarch64": 30}
_WHO_PROCESS, _BEST_EFFORT_LOWEST, _IDLE, _NONE = 1, (2 << 13) | 7, 3 << 13, 0


def step_aside() -> None:
    """Leave the processors to others for good: this process and its children take little, and half of them at most.

    A low priority alone is not enough: its time slices are as long as anyone's, and threads on all processors take the
    memory's bandwidth and the caches from whoever serves. `SCHED_IDLE` would be too much: on a machine that is never
    idle nothing would ever be packed.
    """
    os.nice(19)
    _take_half(os.sched_getaffinity(0))
    _set_io(_IDLE)


@contextlib.contextmanager
def lowered() -> Iterator[None]:
    """Run the block on half of the processors and at low priority, so that who serves meanwhile finds a free one.

    Only a privileged process may raise its own priority again. Without that right it stays as it is: a model that
    served with low priority for good would be worse. What the block starts must not count the processors itself.
    """
    processors = os.sched_getaffinity(0)
    before = os.getpriority(os.PRIO_PROCESS, 0)
    returns = _may_return(before)
    _take_half(processors)
    if returns:
        os.setpriority(os.PRIO_PROCESS, 0, min(before + _NICE, 19))
        _set_io(_BEST_EFFORT_LOWEST)
    try:
        yield
    finally:
        for thread in _threads():  # those that TensorFlow started meanwhile inherited all of it
            with contextlib.suppress(OSError):
                os.sched_setaffinity(thread, processors)
            if returns:
                with contextlib.suppress(OSError):
                    os.setpriority(os.PRIO_PROCESS, thread, before)
                _set_io(_NONE, thread)


def _take_half(processors: set[int]) -> None:
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, sorted(processors)[len(processors) // 2 :])


def _may_return(before: int) -> bool:
    try:
        os.setpriority(os.PRIO_PROCESS, 0, min(before + 1, 19))
        os.setpriority(os.PRIO_PROCESS, 0, before)
    except OSError:
        return False
    return True


def _threads() -> list[int]:
    try:
        return [int(entry.name) for entry in Path("/proc/self/task").iterdir()]
    except OSError:
        return [0]


def _set_io(value: int, thread: int = 0) -> None:
    number = _IOPRIO_SET.get(platform.machine())
    if number is not None and os.uname().sysname == "Linux":
        ctypes.CDLL(None).syscall(number, _WHO_PROCESS, thread, value)
