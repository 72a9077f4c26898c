"""What a process is confined by and how it is scheduled, as named values that can be compared. Runs on both sides.

A child of a standby may stand in for a fresh process only if it is under the same rules: otherwise a program would
leave its caller's sandbox. The client reads its own values; the child takes over what can be taken over (`identity`),
reads all of its own, and refuses unless every one is equal. What a process cannot take over (`lasting`) is part of the
key as well, so that a caller finds, or starts, a standby of its own kind.

Filters of system calls cannot be read back, only counted: they count as equal where both have those of the first
process of their process namespace, as in a container, and no others. Landlock cannot be read at all, but the kernel
lets a process look at another one only if that one is not outside of its own rules: both sides try (`can_see`).
"""

from __future__ import annotations

import os
import resource
import sys

from glowplug.core.errors import StandbyError

from .kernel import call, room

# Lines of /proc/self/status, by the name they have in messages.
_LASTING_LINES = {
    "Uid": "user",
    "Gid": "group",
    "Groups": "supplementary groups",
    "CapInh": "inheritable capabilities",
    "CapPrm": "permitted capabilities",
    "CapEff": "effective capabilities",
    "CapBnd": "bounding capabilities",
    "CapAmb": "ambient capabilities",
    "NoNewPrivs": "no_new_privs",
    "Seccomp": "seccomp mode",
    "Seccomp_filters": "seccomp filters",
    "Speculation_Store_Bypass": "store bypass speculation",
    "SpeculationIndirectBranch": "indirect branch speculation",
    "x86_Thread_features": "shadow stacks",
    "x86_Thread_features_locked": "locked shadow stacks",
    "THP_enabled": "huge pages",
    "Mems_allowed_list": "memory nodes",
}
_GIVEN_LINES = {
    "Umask": "umask",
    "SigBlk": "blocked signals",
    "SigIgn": "ignored signals",
    "Cpus_allowed_list": "processors",
}
_LASTING_FILES = {
    "cgroup": "control group",
    "personality": "personality",
    "coredump_filter": "core dump filter",
    "loginuid": "login user",
    "sessionid": "audit session",
    "attr/current": "security label",
    "attr/apparmor/current": "AppArmor profile",
    "attr/smack/current": "Smack label",
}
# The C library keeps signals 32 and 33 to itself: it gives the latter a handler with a process's first thread.
_OF_PROGRAMS = ~(1 << 31 | 1 << 32)
_GIVEN_FILES = {"oom_score_adj": "oom_score_adj", "timerslack_ns": "timer slack"}
_LIMITS = tuple(sorted(name for name in dir(resource) if name.startswith("RLIMIT_")))
# Read when a process begins: the size of threads' stacks, the layout of memory, what a library may map.
_LASTING_LIMITS = ("RLIMIT_AS", "RLIMIT_DATA", "RLIMIT_STACK")
_PR_GET_DUMPABLE, _PR_GET_SECUREBITS, _PR_GET_PDEATHSIG = 3, 27, 2
_KEYCTL_GET_KEYRING_ID, _SESSION_KEYRING = 0, -3
_IOPRIO_WHO_PROCESS = 1
# get_mempolicy, ioprio_get, keyctl
_CALLS = {"x86_64": (239, 252, 250), "aarch64": (236, 31, 219)}


def lasting() -> dict[str, str]:
    """Return what no process can take over from another: it is as it was when the process began."""
    status = _status()
    found = {label: status.get(line, "") for line, label in _LASTING_LINES.items()}
    found.update((label, _file(name)) for name, label in _LASTING_FILES.items())
    found.update((name, str(resource.getrlimit(getattr(resource, name)))) for name in _LASTING_LIMITS)
    found["namespaces"] = _namespaces()
    found["root directory"] = _root()
    found.update(_asked())
    return found


def given() -> dict[str, str]:
    """Return what a child can take over from its caller, where the kernel lets it."""
    status = _status()
    found = {label: status.get(line, "") for line, label in _GIVEN_LINES.items()}
    found["ignored signals"] = f"{int(found['ignored signals'] or '0', 16) & _OF_PROGRAMS:016x}"
    found.update((label, _file(name)) for name, label in _GIVEN_FILES.items())
    found.update((name, str(resource.getrlimit(getattr(resource, name)))) for name in _LIMITS)
    found["priority"] = str(os.getpriority(os.PRIO_PROCESS, 0))
    found["scheduling"] = f"{os.sched_getscheduler(0)} {os.sched_getparam(0).sched_priority}"
    return found


def read() -> dict[str, str]:
    """Return everything."""
    return {**lasting(), **given()}


def difference(mine: dict[str, str], other: dict[str, str]) -> str:
    """Name what differs."""
    return ", ".join(sorted(name for name in {*mine, *other} if mine.get(name) != other.get(name)))


def require_comparable() -> None:
    """Raise `StandbyError` if this process has filters of its own, which nobody can compare. Runs in the client."""
    status = _status()
    if status.get("Seccomp", "0") == "0":
        return
    first = _status("1")
    if status.get("Seccomp_filters", "?") != first.get("Seccomp_filters", "none"):
        raise StandbyError("a filter of system calls is in force here that a standby need not have")


def can_see(pid: int) -> bool:
    """Tell whether the kernel lets this process look at that one, as only those do who are under no stricter rules.

    Raises `ProcessLookupError` if that one has ended or is about to: it is in no namespace any more.
    """
    try:
        os.readlink(f"/proc/{pid}/ns/mnt")
    except FileNotFoundError:
        raise ProcessLookupError(f"process {pid} has ended") from None
    except PermissionError:
        return False
    return True


def _status(process: str = "self") -> dict[str, str]:
    try:
        with open(f"/proc/{process}/status", "rb", buffering=0) as stream:
            text = stream.read(1 << 16).decode("ascii", "replace")
    except OSError as error:
        if process == "self":
            raise StandbyError("there is no /proc to compare this process with a standby's", seen=error) from None
        return {}
    return {name: value.strip() for name, _, value in (line.partition(":") for line in text.splitlines())}


def _file(name: str) -> str:
    try:
        with open(f"/proc/self/{name}", "rb", buffering=0) as stream:
            return stream.read(1 << 16).decode("utf-8", "surrogateescape").strip()
    except OSError:
        return ""  # this kernel has none


def _namespaces() -> str:
    found = []
    for name in sorted(os.listdir("/proc/self/ns")):
        try:
            found.append(os.readlink(f"/proc/self/ns/{name}"))
        except OSError:
            found.append(f"{name}:?")
    return " ".join(found)


def _root() -> str:
    """Return which directory is this process's root, and the mount by which it is."""
    descriptor = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        with open(f"/proc/self/fdinfo/{descriptor}", "rb", buffering=0) as stream:
            mount = [line for line in stream.read(4096).splitlines() if line.startswith(b"mnt_id")]
    finally:
        os.close(descriptor)
    return f"{status.st_dev} {status.st_ino} {mount[0].decode() if mount else ''}"


def _asked() -> dict[str, str]:
    """Return what only system calls tell."""
    found = {
        "dumpable": str(call("prctl", _PR_GET_DUMPABLE, 0, 0, 0, 0)),
        "securebits": str(call("prctl", _PR_GET_SECUREBITS, 0, 0, 0, 0)),
    }
    answer = room(4)
    call("prctl", _PR_GET_PDEATHSIG, answer, 0, 0, 0)
    found["parent-death signal"] = answer.hex()
    numbers = _CALLS.get(os.uname().machine) if sys.maxsize > 1 << 32 else None
    if numbers is not None:
        memory_policy, input_priority, keys = numbers
        mode, nodes = room(4), room(128)
        call("syscall", memory_policy, mode, nodes, len(nodes) * 8, 0, 0)
        found["memory policy"] = f"{mode.hex()} {nodes.rstrip(bytes(1)).hex()}"
        found["input/output priority"] = str(call("syscall", input_priority, _IOPRIO_WHO_PROCESS, 0))
        found["session keyring"] = str(call("syscall", keys, _KEYCTL_GET_KEYRING_ID, _SESSION_KEYRING, 0))
    return found
