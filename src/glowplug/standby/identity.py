"""What a run takes over from its caller, besides the program: read in the client, put on in the child.

Working directory and descriptors travel as descriptors; the rest is plain values. Whether the child is then like its
caller is found out by comparing (`confinement`), not by trusting that everything here worked.
"""

from __future__ import annotations

import os
import resource
import signal
import time
from typing import Any

from glowplug.core.errors import StandbyError

from . import confinement, wire
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
        "scheduling": (os.sched_getscheduler(0), os.sched_getparam(0).sched_priority),
        "ignored": [number for number in _signals() if signal.getsignal(number) == signal.SIG_IGN],
        "blocked": [int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, ())],
        "confinement": confinement.read(),
    }


def require_replaceable(*, as_program: bool) -> None:
    """Raise `StandbyError` if a child of another process could not stand in for this one. Runs in the client.

    `as_program`: for the program that this process would become, not only for a function that it calls.
    """
    confinement.require_comparable()
    if not as_program:
        return
    own = os.getpid()
    if _read(f"/proc/self/task/{own}/children").strip():
        raise StandbyError("this process has children already, which the program would inherit")
    terminal = int(_read("/proc/self/stat").rpartition(")")[2].split()[4])  # what controls this process; 0: nothing
    standard = {os.fstat(number).st_rdev for number in open_standard() if os.isatty(number)}
    if {_kernel_number(device) for device in standard} != ({terminal} if terminal else set()):
        raise StandbyError("the terminal that controls this process is not the one of its standard streams")
    inherited = inherited_descriptors()
    if len(inherited) > wire.MOST_DESCRIPTORS - 5 or any(map(os.isatty, inherited)):
        raise StandbyError("this process has inherited descriptors that cannot be passed on", seen=len(inherited))


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
    policy, priority = attributes["scheduling"]
    if (os.sched_getscheduler(0), os.sched_getparam(0).sched_priority) != (policy, priority):
        _try("the scheduling policy", os.sched_setscheduler, 0, policy, os.sched_param(priority))
    for file, label in (("oom_score_adj", "oom_score_adj"), ("timerslack_ns", "timer slack")):
        wanted = attributes["confinement"][label]
        if wanted and _read(f"/proc/self/{file}").strip() != wanted:
            _try(f"the {label}", _write, f"/proc/self/{file}", wanted)
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


def _kernel_number(device: int) -> int:
    """Return a device's number as /proc/self/stat gives it."""
    return os.minor(device) & 0xFF | os.major(device) << 8 | os.minor(device) >> 8 << 20


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except FileNotFoundError:  # a kernel that does not tell
        return ""


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as stream:
        stream.write(text)


def _try(what: str, function: Any, *arguments: Any) -> None:
    try:
        function(*arguments)
    except (OSError, ValueError) as error:
        raise StandbyError(f"{what} of the caller cannot be set in the standby's child", seen=error) from error
