"""What the kernel says about a process: one function a file of /proc. A process that is gone gives None."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Stat:
    """The fields of /proc/PID/stat that the probe needs."""

    state: str
    parent: int
    minor_faults: int
    major_faults: int
    cpu_ns: int
    threads: int
    rss_bytes: int


def read_stat(pid: int) -> Stat | None:
    """Read /proc/PID/stat."""
    data = _read(pid, "stat")
    if data is None:
        return None
    fields = data.rpartition(b")")[2].split()
    if len(fields) < 22:
        return None
    return Stat(
        state=fields[0].decode(),
        parent=int(fields[1]),
        minor_faults=int(fields[7]),
        major_faults=int(fields[9]),
        cpu_ns=(int(fields[11]) + int(fields[12])) * TICK_NS,
        threads=int(fields[17]),
        rss_bytes=int(fields[21]) * PAGE_BYTES,
    )


def read_storage_bytes(pid: int) -> int | None:
    """Return the bytes that the process made the kernel fetch from storage."""
    for line in (_read(pid, "io") or b"").splitlines():
        if line.startswith(b"read_bytes:"):
            return int(line[11:])
    return None


def read_memory(pid: int) -> dict[str, int] | None:
    """Return `pss_bytes`, `private_bytes` and `swap_bytes`. This walks page tables: milliseconds for TensorFlow."""
    data = _read(pid, "smaps_rollup")
    if not data:
        return None
    totals = {"pss_bytes": 0, "private_bytes": 0, "swap_bytes": 0}
    names = {b"Pss:": "pss_bytes", b"Private_Clean:": "private_bytes", b"Private_Dirty:": "private_bytes"}
    names[b"Swap:"] = "swap_bytes"
    for line in data.splitlines():
        words = line.split()
        if len(words) >= 2 and words[0] in names:
            totals[names[words[0]]] += int(words[1]) * 1024
    return totals


def read_command(pid: int) -> tuple[str, ...]:
    """Return the argument vector of a process, empty when it is gone."""
    data = _read(pid, "cmdline") or b""
    return tuple(os.fsdecode(word) for word in data.rstrip(b"\0").split(b"\0")) if data else ()


def read_children(pid: int) -> list[int]:
    """Return the ids of the children of a process, of all its threads."""
    children: list[int] = []
    try:
        tasks = list(Path("/proc", str(pid), "task").iterdir())
    except OSError:
        return children
    for task in tasks:
        data = _read(pid, f"task/{task.name}/children")
        children.extend(int(word) for word in (data or b"").split())
    return children


def _read(pid: int, name: str) -> bytes | None:
    try:
        return Path("/proc", str(pid), name).read_bytes()
    except OSError:
        return None
