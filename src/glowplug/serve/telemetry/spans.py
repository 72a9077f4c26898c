"""Spans of requests, and of the calls of workers below them."""

from __future__ import annotations

import time
from typing import Any

from opentelemetry import propagate
from opentelemetry.context import Context
from opentelemetry.trace import SpanKind, Status, StatusCode, Tracer, format_trace_id, set_span_in_context

from glowplug.serve.workers.jobs import Timing

from .trail import Field, ModelCall, Outcome, Trail

_MAX_CHARACTERS = 200  # of what a client chose
_OURS = frozenset({"INTERNAL", "UNAVAILABLE", "UNKNOWN", "DATA_LOSS", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED"})


class Spans:
    """Makes spans. A request is part of the trace that its `traceparent` names, or begins one."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._fields = [(one, one.lower().encode()) for one in propagate.get_global_textmap().fields]

    def begin(self, trail: Trail, name: str, read: Field) -> None:
        """Begin the span of a request."""
        carrier = {one: value.decode("latin-1") for one, key in self._fields if (value := read(key))}
        above = propagate.extract(carrier, Context())
        span = self._tracer.start_span(name, above, SpanKind.SERVER)
        trail.span, trail.trace_id = span, format_trace_id(span.get_span_context().trace_id)

    def called(self, call: ModelCall) -> None:
        """Add the span of a call of a worker, with the times that the worker measured where it answered."""
        request: Any = call.trail.span
        about = {
            "glowplug.model.name": call.model,
            "glowplug.model.version": call.version,
            "glowplug.signature": call.signature,
        }
        timing = call.timing or Timing()
        request.set_attributes(about)
        span = self._tracer.start_span(
            f"worker {call.model}",
            set_span_in_context(request, Context()),
            SpanKind.INTERNAL,
            {**about, "glowplug.queue.seconds": timing.waited_s, "glowplug.batch.rows": timing.rows},
            start_time=timing.began_ns or call.began_ns,
        )
        if timing.pid:
            span.set_attribute("process.pid", timing.pid)
        if call.code != "OK":
            _fail(span, call.code, call.error)
        span.end(timing.ended_ns or time.time_ns())

    def end(self, trail: Trail, outcome: Outcome) -> None:
        """End the span of a request. What the client did wrong is its own error, and none of this server's."""
        span: Any = trail.span
        span.update_name(outcome.name)
        if outcome.model:
            span.set_attribute("glowplug.model.name", outcome.model[:_MAX_CHARACTERS])
        span.set_attributes(dict(outcome.attributes))
        if outcome.code in _OURS:
            _fail(span, outcome.code, outcome.error)
        elif outcome.code != "OK":
            span.set_attribute("error.type", outcome.code)
        span.end()


def _fail(span: Any, code: str, text: str) -> None:
    span.set_attribute("error.type", code)
    span.set_status(Status(StatusCode.ERROR, text[:_MAX_CHARACTERS]))
