"""OpenTelemetry: the one place that sets its SDK up. Nothing imports this module unless `--otel` was given.

Where to, how often and how much is said by the standard variables, which the SDK itself reads. Its threads run in the
front end alone.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from glowplug.core.errors import UsageError
from glowplug.core.version import VERSION
from glowplug.serve.log import Log

from .trail import Field, ModelCall, Outcome, Trail

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider

    from glowplug.serve.metrics.registry import Metrics
    from glowplug.serve.models.catalog import Catalog

    from .measures import Measures
    from .spans import Spans

_NAME = "glowplug.serve"
_PROTOCOL = "http/protobuf"


class OpenTelemetry:
    """Exports traces and metrics until it is closed."""

    def __init__(self, catalog: Catalog, metrics: Metrics, pids: Mapping[int, int], log: Log) -> None:
        check_environment()
        self._handler = _Handler(log)
        logging.getLogger("opentelemetry").addHandler(self._handler)
        logging.getLogger("opentelemetry").propagate = False
        resource = _resource()
        self._providers: list[TracerProvider | MeterProvider] = []
        self._spans = self._measures = None
        if _wanted("TRACES"):
            self._spans = self._make_spans(resource)
        if _wanted("METRICS"):
            self._measures = self._make_measures(resource, catalog, metrics, pids)

    def _make_spans(self, resource: Resource) -> Spans:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        from .spans import Spans

        provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._providers.append(provider)
        return Spans(provider.get_tracer(_NAME, VERSION))

    def _make_measures(
        self, resource: Resource, catalog: Catalog, metrics: Metrics, pids: Mapping[int, int]
    ) -> Measures:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.metrics.view import ExplicitBucketHistogramAggregation, View

        from .measures import DURATIONS, SECONDS, Measures

        reader = PeriodicExportingMetricReader(OTLPMetricExporter())
        views = [View(instrument_name=DURATIONS, aggregation=ExplicitBucketHistogramAggregation(SECONDS))]
        provider = MeterProvider([reader], resource, shutdown_on_exit=False, views=views)
        self._providers.append(provider)
        return Measures(provider.get_meter(_NAME, VERSION), catalog, metrics, pids)

    def begin(self, trail: Trail, protocol: str, name: str, read: Field) -> None:
        """A request came."""
        if self._spans is not None:
            self._spans.begin(trail, name, read)

    def called(self, call: ModelCall) -> None:
        """A call of a model is over."""
        if self._spans is not None and call.trail.span is not None:
            self._spans.called(call)
        if self._measures is not None:
            self._measures.called(call)

    def end(self, trail: Trail, protocol: str, outcome: Outcome) -> None:
        """A request is over."""
        if self._spans is not None:
            self._spans.end(trail, outcome)
        if self._measures is not None:
            self._measures.ended(protocol, outcome)

    def close(self) -> None:
        """Export what there is, and stop. It may take as long as the exporters' own timeouts: run it in a thread."""
        for provider in self._providers:
            provider.shutdown()


def check_environment() -> None:
    """Refuse what the standard variables ask for and is not here, rather than to export nothing in silence."""
    for signal in ("TRACES", "METRICS"):
        kind = os.environ.get(f"OTEL_{signal}_EXPORTER", "otlp").strip() or "otlp"
        if kind not in ("otlp", "none"):
            raise UsageError(
                "this exporter is not offered", seen=f"OTEL_{signal}_EXPORTER={kind}", remedy="use otlp or none"
            )
        for name in (f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
            protocol = os.environ.get(name, "").strip() or _PROTOCOL
            if protocol != _PROTOCOL:
                raise UsageError("this protocol is not offered", seen=f"{name}={protocol}", remedy=f"use {_PROTOCOL}")


def _wanted(signal: str) -> bool:
    return os.environ.get(f"OTEL_{signal}_EXPORTER", "").strip() != "none"


def _resource() -> Resource:
    """Return what describes this server: the variables' name and attributes go before ours."""
    from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, OTELResourceDetector, Resource

    given = OTELResourceDetector().detect().attributes
    ours = {SERVICE_NAME: "glowplug", SERVICE_VERSION: VERSION}
    return Resource.create({name: value for name, value in ours.items() if name not in given})


class _Handler(logging.Handler):
    """What the SDK complains about goes to the server's log: a collector that is away, spans that were dropped."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Take one complaint. The SDK's threads call this."""
        self._log.event("telemetry_failed", error=record.getMessage()[:500])
