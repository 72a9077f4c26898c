"""Watch a tree of processes from outside: memory, threads, page faults, bytes read, and who is there.

Runs in the profiler, on a thread of its own. The cheap figures are read every 50 ms; proportional memory, whose
reading walks page tables and holds a lock that the target needs, so seldom that it costs the target under 1 %.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from glowplug.core.clock import now_ns

from . import procfs

INTERVAL_S = 0.05
TREE_EVERY = 2  # samples between two looks at the tree of processes
MEMORY_SHARE = 200  # a reading of proportional memory is followed by this many times its own duration without one


@dataclass(slots=True)
class Seen:
    """What was seen of one process."""

    pid: int
    parent: int
    command: tuple[str, ...]
    first_ns: int
    last_ns: int
    peak_rss_bytes: int = 0
    threads: int = 0
    major_faults: int = 0
    minor_faults: int = 0
    cpu_ns: int = 0
    read_bytes: int = 0
    memory: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Samples:
    """Series of the root process, and every process of its tree, root first. Times count from the launch."""

    series: dict[str, list[tuple[int, int]]]
    processes: dict[int, Seen]


class Sampler:
    """Samples until it is stopped."""

    def __init__(self, root: int, started_ns: int) -> None:
        self._root = root
        self._started_ns = started_ns
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="glowplug-sampler", daemon=True)
        self._series: dict[str, list[tuple[int, int]]] = {}
        self._seen: dict[int, Seen] = {}
        self._memory_due_ns = 0

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> Samples:
        """End, and return what was seen."""
        self._stop.set()
        self._thread.join()
        return Samples(self._series, self._seen)

    def _run(self) -> None:
        count = 0
        while True:
            self._sample_root()
            if count % TREE_EVERY == 0:
                self._sample_tree()
            count += 1
            if self._stop.wait(INTERVAL_S):
                return

    def _add(self, name: str, at_ns: int, value: int) -> None:
        self._series.setdefault(name, []).append((at_ns, value))

    def _sample_root(self) -> None:
        at_ns = now_ns() - self._started_ns
        stat = procfs.read_stat(self._root)
        if stat is None or stat.state == "Z":
            return
        self._note(self._root, stat, at_ns)
        self._add("rss_bytes", at_ns, stat.rss_bytes)
        self._add("threads", at_ns, stat.threads)
        self._add("major_faults", at_ns, stat.major_faults)
        self._add("minor_faults", at_ns, stat.minor_faults)
        read_bytes = procfs.read_storage_bytes(self._root)
        if read_bytes is not None:
            self._add("read_bytes", at_ns, read_bytes)
            self._seen[self._root].read_bytes = read_bytes
        self._sample_memory(at_ns)

    def _sample_memory(self, at_ns: int) -> None:
        if at_ns < self._memory_due_ns:
            return
        begun_ns = now_ns()
        memory = procfs.read_memory(self._root)
        took_ns = now_ns() - begun_ns
        self._memory_due_ns = at_ns + max(500_000_000, took_ns * MEMORY_SHARE)
        if memory:
            self._seen[self._root].memory = memory
            self._add("pss_bytes", at_ns, memory["pss_bytes"])

    def _sample_tree(self) -> None:
        at_ns = now_ns() - self._started_ns
        alive, total = 0, 0
        waiting = [self._root]
        while waiting:
            pid = waiting.pop()
            stat = procfs.read_stat(pid)
            if stat is None:
                continue
            if stat.state != "Z":
                alive += 1
                total += stat.rss_bytes
                self._note(pid, stat, at_ns)
                if pid != self._root and pid not in self._seen:
                    continue
            waiting.extend(procfs.read_children(pid))
        if alive:
            self._add("tree_rss_bytes", at_ns, total)
            self._add("processes", at_ns, alive)

    def _note(self, pid: int, stat: procfs.Stat, at_ns: int) -> None:
        seen = self._seen.get(pid)
        if seen is None:
            seen = self._seen[pid] = Seen(pid, stat.parent, procfs.read_command(pid), at_ns, at_ns)
        if pid != self._root:
            # A fork shows its parent's command until it executes another program.
            seen.command = procfs.read_command(pid) or seen.command
            if at_ns - seen.first_ns > 1_000_000_000 and not seen.memory:
                seen.memory = procfs.read_memory(pid) or {}
        seen.last_ns = at_ns
        seen.peak_rss_bytes = max(seen.peak_rss_bytes, stat.rss_bytes)
        seen.threads = max(seen.threads, stat.threads)
        seen.major_faults, seen.minor_faults, seen.cpu_ns = stat.major_faults, stat.minor_faults, stat.cpu_ns
