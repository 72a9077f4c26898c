"""The log: its lines, and that nobody who writes one waits."""

from __future__ import annotations

import io
import json
import os
import threading

from glowplug.serve.log import Log
from glowplug.serve.log_writer import MAX_HELD, LineWriter


def test_whoever_logs_does_not_wait_for_whoever_reads():
    readable, writable = os.pipe()
    writer = LineWriter(os.fdopen(writable, "w"), lambda dropped: f"dropped {dropped}")
    line, count = "x" * 999, 4 * MAX_HELD // 1000
    for _ in range(count):  # nobody reads: the pipe is full after 64 KiB, and the bound is reached
        writer.write(line)
    assert not writer.flush(0)
    seen = list[str]()
    reader = threading.Thread(target=lambda: seen.extend(os.fdopen(readable)))
    reader.start()
    assert writer.flush(60)
    writer.write("last")
    assert writer.flush(60)
    writer._stream.close()
    reader.join(60)
    kept = [text.rstrip("\n") for text in seen]
    notes = [int(text.split()[1]) for text in kept if text.startswith("dropped")]
    assert kept.count(line) + sum(notes) == count
    assert sum(notes) >= count - 2 * MAX_HELD // 999 - 70  # one bound is being written, one is held
    assert kept[-1] == "last"


def test_a_reader_that_has_gone_ends_nothing():
    readable, writable = os.pipe()
    os.close(readable)
    writer = LineWriter(os.fdopen(writable, "w"), str)
    for _ in range(3):
        writer.write("a line")
        assert writer.flush(60)


def lines(stream):
    return stream.getvalue().splitlines()


def test_the_access_log_is_json_on_request():
    stream = io.StringIO()
    log = Log(as_json=False, access=False, access_json=True, stream=stream)
    assert log.access
    log.event("loading", model="half")
    log.request("REST", "predict", "OK", 0.0125, "me", model="half", version="1", signature="", status=200)
    text, access = lines(stream)
    assert text.endswith("loading model=half")
    document = json.loads(access)
    assert document.pop("time") > 0
    assert document == {
        "event": "request",
        "protocol": "REST",
        "method": "predict",
        "code": "OK",
        "ms": 12.5,
        "id": "me",
        "model": "half",
        "version": "1",
        "status": 200,
    }


def test_a_request_is_one_line_of_bounded_length():
    hostile = "a\n12:00:00 available model=b \u2028" + "x" * 100_000
    for as_json in (False, True):
        stream = io.StringIO()
        log = Log(as_json=as_json, access=True, stream=stream)
        log.request("REST", hostile, "NOT_FOUND", 0.0, hostile, model=hostile)
        assert stream.getvalue().count("\n") == 1
        assert len(stream.getvalue()) < 1000


def test_events_with_an_error_are_heard():
    heard = []
    log = Log(as_json=True, access=True, stream=io.StringIO())
    log.on_error = lambda name, values: heard.append((name, values))
    log.event("loading", model="half")
    log.event("load_failed", model="half", error="no")
    assert heard == [("load_failed", {"model": "half", "error": "no"})]
