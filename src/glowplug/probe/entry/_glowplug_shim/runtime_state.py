"""What this process is: threads, memory, and whether TensorFlow's runtime has started. Runs in the target."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # type checkers take it for true; importing typing would cost the target 5 ms
if TYPE_CHECKING:
    from typing import Any

runtime_started = False
graph_ops = 0
traces = 0


def is_ready() -> bool:
    """Say whether TensorFlow has a context or a session, without creating either."""
    return runtime_started


def mark_started() -> None:
    """Remember that TensorFlow's runtime has threads now."""
    global runtime_started  # noqa: PLW0603 - one flag a process
    runtime_started = True


def count_threads() -> int:
    """Return the number of kernel threads of this process, 0 where /proc is not there."""
    return memory_and_threads()[1]


def memory_and_threads() -> tuple[int, int]:
    """Return resident bytes and kernel threads of this process."""
    try:
        with open("/proc/self/stat", "rb", 0) as stream:
            fields = stream.read(1024).rpartition(b")")[2].split()
        return int(fields[21]) * PAGE_BYTES, int(fields[17])
    except (OSError, ValueError, IndexError):
        return 0, 0


def count_graph_ops(graph: Any) -> int:
    """Return the number of operations in a TensorFlow graph."""
    count = getattr(graph, "num_operations", None)
    return int(count()) if callable(count) else len(graph.get_operations())


def _page_bytes() -> int:
    try:
        return int(sys.modules["os"].sysconf("SC_PAGE_SIZE"))
    except (ValueError, OSError):
        return 4096


PAGE_BYTES = _page_bytes()
