"""The event file of one process: append-only, and whole up to the last event whatever ends the process.

Runs in the target. Events go into a shared mapping of a file, so that what was recorded survives `kill -9`,
`os._exit` and a crash without a system call per event. The format is in `docs/reference/probe-events.md`: a frame is
a 4-byte length and a marshalled tuple; the length is written last, so a torn frame is never seen.
"""

from __future__ import annotations

import _thread
import marshal
import mmap
import os
import time

BEGIN, END, SPAN, FACT, ROUND, OPS, ASSIGNED, EVENT = range(8)

CHUNK_BYTES = 1 << 20
MAXIMUM_BYTES = 256 << 20  # of events in one process; beyond it recording stops and says so

now_ns = time.perf_counter_ns  # CLOCK_MONOTONIC on Linux: the same clock in every process
get_thread_id = _thread.get_native_id
_dumps = marshal.dumps


class Recorder:
    """Writes events. Every method is safe in any thread, in signal handlers and during interpreter shutdown."""

    def __init__(self, directory: str, how: str) -> None:
        self.directory = directory
        self._open(how, os.getppid())

    def _open(self, how: str, parent: int) -> None:
        self.pid = os.getpid()
        self._lock = _thread.allocate_lock()
        self._pending: list[bytes] = []
        self._next = 0
        self.count = 0
        self._chunk = 0
        self._map: mmap.mmap | None = None
        self._position = CHUNK_BYTES
        self._stem = os.path.join(self.directory, f"{self.pid}.{now_ns()}")
        self.fact("process", {"pid": self.pid, "parent": parent, "how": how, "start_ns": now_ns()})

    def reopen_after_fork(self) -> None:
        """Give a forked child its own file. The parent's mapping is shared: writing to it would corrupt it."""
        parent = self.pid
        self._open("fork", parent)

    def begin(self, phase: str, name: str, attrs: dict[str, object] | None = None) -> int:
        """Open a span on this thread and return its number."""
        self._next = number = self._next + 1
        self.write((BEGIN, number, get_thread_id(), now_ns(), phase, name, attrs))
        return number

    def end(self, number: int, attrs: dict[str, object] | None = None) -> None:
        """Close a span; `attrs` are added to those it was opened with."""
        self.write((END, number, now_ns(), attrs))

    def span(self, start_ns: int, end_ns: int, phase: str, name: str, attrs: dict[str, object]) -> None:
        """Record a finished span of this thread."""
        self.write((SPAN, get_thread_id(), start_ns, end_ns, phase, name, attrs))

    def fact(self, key: str, value: object) -> None:
        """Record something true of the whole process."""
        self.write((FACT, key, value))

    def note(self, text: str) -> None:
        """Record a remark for the reader of the profile."""
        self.write((FACT, "note", text))

    def write(self, event: tuple[object, ...]) -> None:
        """Append one event. An event that cannot be written is dropped: the target must not notice."""
        self.count += 1
        try:
            data = _dumps(event, 4)  # type: ignore[arg-type]
        except ValueError:
            return
        if not self._lock.acquire(False):
            # Another thread, or this one inside a signal handler, is writing: it takes this event along.
            self._pending.append(data)
            return
        try:
            self._append(data)
            while self._pending:
                self._append(self._pending.pop())
        finally:
            self._lock.release()

    def _append(self, data: bytes) -> None:
        position = self._position
        size = len(data)
        if position + size + 8 > CHUNK_BYTES:
            if size + 8 > CHUNK_BYTES or not self._grow():
                return
            position = 0
        target = self._map
        if target is None:
            return
        target[position + 4 : position + 4 + size] = data
        target[position : position + 4] = size.to_bytes(4, "little")
        self._position = position + 4 + size

    def _grow(self) -> bool:
        """Map the next chunk. Its blocks are reserved first: a full disk must not become a SIGBUS."""
        if self._chunk * CHUNK_BYTES >= MAXIMUM_BYTES:
            self._map = None
            return False
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            descriptor = os.open(f"{self._stem}.{self._chunk}", flags, 0o600)
            try:
                os.posix_fallocate(descriptor, 0, CHUNK_BYTES)
                self._map = mmap.mmap(descriptor, CHUNK_BYTES)
            finally:
                os.close(descriptor)
        except OSError:
            self._map = None
            return False
        self._chunk += 1
        return True
