"""The Chrome trace: the structure that ui.perfetto.dev and catapult expect."""

from __future__ import annotations

import json
from typing import Any

import pytest

from glowplug.core.profile import Profile, Span
from glowplug.report.perfetto import render_trace

from . import profiles


def events(profile: Profile, phase: str) -> list[dict[str, Any]]:
    document = json.loads(render_trace(profile))
    return [event for event in document["traceEvents"] if event["ph"] == phase]


def test_every_span_is_an_event_with_its_nanoseconds() -> None:
    profile = profiles.training()
    complete = events(profile, "X")
    assert len(complete) + len(events(profile, "i")) == len(profile.spans)
    trace = next(event for event in complete if event["cat"] == "trace")
    span = next(span for span in profile.spans if span.kind == "trace")
    assert (round(trace["ts"] * 1000), round(trace["dur"] * 1000)) == (span.start_ns, span.duration_ns)
    assert trace["args"]["reason"] == "first"
    assert (trace["pid"], trace["tid"]) == (span.pid, span.thread)


def test_required_fields_by_phase() -> None:
    document = json.loads(render_trace(profiles.training()))
    assert document["displayTimeUnit"] in ("ms", "ns")
    for event in document["traceEvents"]:
        assert isinstance(event["name"], str)
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        assert event["ts"] >= 0
        if event["ph"] == "C":
            assert all(isinstance(value, (int, float)) for value in event["args"].values())
    assert {event["ph"] for event in document["traceEvents"]} <= {"X", "i", "M", "C"}


def test_events_of_one_thread_nest() -> None:
    threads: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for event in events(profiles.training(), "X"):
        threads.setdefault((event["pid"], event["tid"]), []).append(event)
    for row in threads.values():
        stack: list[float] = []
        for event in sorted(row, key=lambda event: (event["ts"], -event["dur"])):
            while stack and stack[-1] <= event["ts"] + 0.0005:
                stack.pop()
            assert not stack or event["ts"] + event["dur"] <= stack[-1] + 0.0005
            stack.append(event["ts"] + event["dur"])


def test_processes_and_threads_have_names() -> None:
    names = {(event["name"], event["pid"], event["tid"]): event["args"] for event in events(profiles.training(), "M")}
    root, worker, child = profiles.ROOT, profiles.WORKER, profiles.CHILD
    assert names[("process_name", root, root)]["name"] == "python train.py resnet50"
    assert names[("process_name", child, child)]["name"] == "nvidia-smi -L"
    assert names[("thread_name", root, root)]["name"] == "main thread"
    assert names[("thread_name", root, worker)]["name"] == "prefetch"


def test_series_are_counters() -> None:
    counters = {event["name"] for event in events(profiles.training(), "C")}
    assert {"rss_bytes", "threads", "graph_ops"} <= counters
    assert any("train.py:31" in name for name in counters)


def test_empty_spans_are_instants() -> None:
    span = Span(1, None, 5, 5, "interpreter", "fork", 70, 70, {"kind": "fork", "share": float("inf")})
    (event,) = events(Profile((), 0, 100, {}, (span,), {}), "i")
    assert event["s"] == "t"
    assert event["args"]["share"] == "inf"


def test_names_that_are_not_unicode(tmp_path: Any) -> None:
    assert json.loads(render_trace(profiles.hostile()))["traceEvents"]


@pytest.mark.parametrize("ns", [0, 1, 999, 12_345_678_901_234])
def test_microseconds_keep_nanoseconds(ns: int) -> None:
    span = Span(1, None, 5, 5, "build", "a", ns, ns + 1, {"kind": "layer"})
    (event,) = events(Profile((), 0, ns + 1, {}, (span,), {}), "X")
    assert round(event["ts"] * 1000) == ns
    assert round(event["dur"] * 1000) == 1
