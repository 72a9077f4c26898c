"""A profile for speedscope.app: one evented profile for each thread, spans as frames.

Frames must nest there; what a malformed profile holds is cut to what encloses it.
"""

from __future__ import annotations

import json
from typing import Any

from glowplug.core.profile import Profile, Span

from .wording import visible

SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def render_speedscope(profile: Profile) -> bytes:
    """Return the file as JSON."""
    frames: dict[str, int] = {}
    threads: dict[tuple[int, int], list[Span]] = {}
    for span in profile.spans:
        threads.setdefault((span.pid, span.thread), []).append(span)
    root = (profile.root_pid, profile.root_pid)
    ordered = sorted(threads.items(), key=lambda item: (item[0] != root, item[0]))
    document = {
        "$schema": SCHEMA,
        "exporter": "glowplug",
        "name": visible(" ".join(profile.command)),
        "shared": {"frames": []},
        "profiles": [_thread(pid, thread, spans, profile.wall_ns, frames) for (pid, thread), spans in ordered],
    }
    document["shared"] = {"frames": [{"name": name} for name in frames]}
    return json.dumps(document, separators=(",", ":"), allow_nan=False).encode()


def _thread(pid: int, thread: int, spans: list[Span], wall_ns: int, frames: dict[str, int]) -> dict[str, Any]:
    events: list[dict[str, Any]] = []
    opened: list[tuple[int, int]] = []  # frame and end

    def close(until_ns: int) -> None:
        while opened and opened[-1][1] <= until_ns:
            frame, end_ns = opened.pop()
            events.append({"type": "C", "frame": frame, "at": end_ns})

    for span in sorted(spans, key=lambda span: (span.start_ns, -span.end_ns)):
        close(span.start_ns)
        end_ns = min(span.end_ns, opened[-1][1]) if opened else span.end_ns
        if end_ns <= span.start_ns:
            continue  # a moment
        frame = frames.setdefault(f"{span.phase}: {visible(span.name)}", len(frames))
        events.append({"type": "O", "frame": frame, "at": span.start_ns})
        opened.append((frame, end_ns))
    close(max([wall_ns, *(end_ns for _, end_ns in opened)]))
    last_ns = max([wall_ns, *(event["at"] for event in events)])
    name = f"process {pid}" if pid == thread else f"process {pid}, thread {thread}"
    return {
        "type": "evented",
        "name": name,
        "unit": "nanoseconds",
        "startValue": 0,
        "endValue": last_ns,
        "events": events,
    }
