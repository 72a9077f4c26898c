"""A profile as a Chrome trace (the catapult JSON format), which ui.perfetto.dev and chrome://tracing open.

Times there are microseconds; three decimals keep the nanoseconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from glowplug.core.profile import Process, Profile, Span

from .document import plain_value

Event = dict[str, Any]


def render_trace(profile: Profile) -> bytes:
    """Return the trace as JSON: spans as complete events, empty spans as instants, series and loops as counters."""
    document = {
        "displayTimeUnit": "ms",
        "otherData": {
            "command": " ".join(profile.command),
            "exit_code": profile.exit_code,
            "wall_ns": profile.wall_ns,
            "environment": plain_value(profile.environment),
        },
        "traceEvents": [
            *_names(profile),
            *(_span_event(span) for span in profile.spans),
            *_counters(profile),
        ],
    }
    return json.dumps(document, separators=(",", ":"), allow_nan=False).encode()


def _names(profile: Profile) -> Iterator[Event]:
    """Yield the names and the order of processes and threads."""
    known = {process.pid: process for process in profile.processes}
    pids = dict.fromkeys([*known, *(span.pid for span in profile.spans)])
    for order, pid in enumerate(pids):
        yield _metadata(pid, pid, "process_name", {"name": _process_name(known.get(pid), pid)})
        yield _metadata(pid, pid, "process_sort_index", {"sort_index": order})
    threads: dict[tuple[int, int], str] = {}
    for span in profile.spans:
        name = "main thread" if span.thread == span.pid else f"thread {span.thread}"
        if span.kind == "thread":
            threads[(span.pid, span.thread)] = span.name
        else:
            threads.setdefault((span.pid, span.thread), name)
    for (pid, thread), name in threads.items():
        yield _metadata(pid, thread, "thread_name", {"name": name})
        yield _metadata(pid, thread, "thread_sort_index", {"sort_index": 0 if pid == thread else thread})


def _process_name(process: Process | None, pid: int) -> str:
    return " ".join(process.command) if process is not None and process.command else f"process {pid}"


def _metadata(pid: int, thread: int, name: str, args: dict[str, Any]) -> Event:
    return {"ph": "M", "pid": pid, "tid": thread, "ts": 0, "name": name, "args": args}


def _span_event(span: Span) -> Event:
    event: Event = {
        "name": span.name,
        "cat": span.phase,
        "pid": span.pid,
        "tid": span.thread,
        "ts": _microseconds(span.start_ns),
        "args": plain_value(span.attrs),
    }
    if span.duration_ns > 0:
        return {**event, "ph": "X", "dur": _microseconds(span.duration_ns)}
    return {**event, "ph": "i", "s": "t"}


def _counters(profile: Profile) -> Iterator[Event]:
    for series in profile.series:
        for at_ns, value in series.points:
            yield _counter(profile.root_pid, series.name, at_ns, value)
    for loop in profile.loops:
        for entry in loop.rounds:
            name = f"round of {loop.call} at {loop.site} (ms)"
            yield _counter(loop.pid, name, entry.start_ns, round(entry.duration_ns / 1e6, 3))


def _counter(pid: int, name: str, at_ns: int, value: float) -> Event:
    return {
        "ph": "C",
        "pid": pid,
        "tid": pid,
        "name": name,
        "ts": _microseconds(at_ns),
        "args": {"value": value},
    }


def _microseconds(ns: int) -> float:
    return round(ns / 1000, 3)
