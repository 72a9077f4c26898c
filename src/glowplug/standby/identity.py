"""What a run takes over from its caller, besides the program: read in the client, put on in the child.

Working directory and descriptors travel as descriptors; the rest is plain values.
"""

from __future__ import annotations

import os
import resource
import signal
import time
from typing import Any

from glowplug.core.errors import StandbyError

from .key import THREAD_COUNTS

_LIMITS = tuple(sorted(name for name in dir(resource) if name.startswith("RLIMIT_")))
_PYTHONS_OWN = (signal.SIGPIPE, signal.SIGXFSZ)  # every Python ignores these two


def describe() -> dict[str, Any]:
    """Return the caller's attributes. Runs in the client."""
    mask = os.umask(0o077)
    os.umask(mask)
    return {
        "environment": dict(os.environb),
        "umask": mask,
        "limits": {name: resource.getrlimit(getattr(resource, name)) for name in _LIMITS},
        "affinity": sorted(os.sched_getaffinity(0)),
        "nice": os.getpriority(os.PRIO_PROCESS, 0),
        "ignored": [number for number in _signals() if signal.getsignal(number) == signal.SIG_IGN],
        "blocked": [int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, ())],
    }


def inherited_descriptors() -> list[int]:
    """Return the descriptors from 3 on that a program started by this process would have. Runs in the client."""
    found = []
    for entry in os.listdir("/proc/self/fd"):
        number = int(entry)
        try:
            if number > 2 and os.get_inheritable(number):
                found.append(number)
        except OSError:
            continue  # the one that listed the directory
    return found


def open_standard() -> list[int]:
    """Return those of 0, 1 and 2 that are open. Runs in the client."""
    found = []
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            continue
        found.append(number)
    return found


def put_on(attributes: dict[str, Any]) -> None:
    """Take the caller's attributes over, or raise `StandbyError` where the kernel forbids it. Runs in the child."""
    environment = attributes["environment"]
    os.environb.clear()
    os.environb.update(environment)
    time.tzset()
    os.umask(attributes["umask"])
    for name, wanted in attributes["limits"].items():
        kind = getattr(resource, name)
        if resource.getrlimit(kind) != tuple(wanted):
            _try(f"the limit {name}", resource.setrlimit, kind, tuple(wanted))
    if sorted(os.sched_getaffinity(0)) != attributes["affinity"]:
        _try("the processors", os.sched_setaffinity, 0, attributes["affinity"])
    if os.getpriority(os.PRIO_PROCESS, 0) != attributes["nice"]:
        _try("the priority", os.setpriority, os.PRIO_PROCESS, 0, attributes["nice"])


def has_same_processors(attributes: dict[str, Any]) -> bool:
    """Tell whether threads that are made here, now, are as they would be in the caller. Runs in the standby."""
    environment = attributes["environment"]
    return (
        attributes["affinity"] == sorted(os.sched_getaffinity(0))
        and attributes["nice"] == os.getpriority(os.PRIO_PROCESS, 0)
        and all(environment.get(name) == os.environb.get(name) for name in map(os.fsencode, THREAD_COUNTS))
    )


def put_on_signals(attributes: dict[str, Any]) -> None:
    """Give every signal the action it has when a fresh Python starts under this caller. Runs in the child."""
    ignored = set(attributes["ignored"])
    signal.set_wakeup_fd(-1)
    for number in _signals():
        if number in ignored or number in _PYTHONS_OWN:
            wanted: Any = signal.SIG_IGN
        else:
            wanted = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        if signal.getsignal(number) != wanted:
            signal.signal(number, wanted)
    signal.pthread_sigmask(signal.SIG_SETMASK, attributes["blocked"])


def _signals() -> list[int]:
    return [int(number) for number in signal.valid_signals() if number not in (signal.SIGKILL, signal.SIGSTOP)]


def _try(what: str, function: Any, *arguments: Any) -> None:
    try:
        function(*arguments)
    except (OSError, ValueError) as error:
        raise StandbyError(f"{what} of the caller cannot be set in the standby's child", seen=error) from error
