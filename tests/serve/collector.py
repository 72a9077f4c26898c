"""A collector of OpenTelemetry: takes exports over HTTP, and keeps what is in their protobuf messages."""

from __future__ import annotations

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def plain(value: Any) -> Any:
    """Return what an `AnyValue` holds."""
    return getattr(value, value.WhichOneof("value"))


def attributes(message: Any) -> dict[str, Any]:
    return {one.key: plain(one.value) for one in message.attributes}


class Collector:
    """Listens while the block runs."""

    def __init__(self) -> None:
        from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
        from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

        messages = {
            "/v1/traces": trace_service_pb2.ExportTraceServiceRequest,
            "/v1/metrics": metrics_service_pb2.ExportMetricsServiceRequest,
        }
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                assert self.headers["Content-Type"] == "application/x-protobuf"
                collector._take(self.path, messages[self.path].FromString(body), dict(self.headers))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self.exports: list[tuple[str, Any, dict[str, str]]] = []
        self._changed = threading.Condition()

    def __enter__(self) -> Collector:
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _take(self, path: str, message: Any, headers: dict[str, str]) -> None:
        with self._changed:
            self.exports.append((path, message, headers))
            self._changed.notify_all()

    def resources(self) -> list[dict[str, Any]]:
        return [
            attributes(one.resource)
            for _, message, _ in self.exports
            for one in getattr(message, "resource_spans", getattr(message, "resource_metrics", ()))
        ]

    def spans(self) -> list[Any]:
        return [
            span
            for path, message, _ in self.exports
            if path == "/v1/traces"
            for resource in message.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def metric(self, name: str) -> list[Any]:
        """Return the points of the last export that has a metric."""
        for path, message, _ in reversed(self.exports):
            if path == "/v1/metrics":
                for resource in message.resource_metrics:
                    for scope in resource.scope_metrics:
                        for one in scope.metrics:
                            if one.name == name:
                                return list(getattr(one, one.WhichOneof("data")).data_points)
        return []

    def wait(self, found: Any, timeout: float = 60) -> Any:
        """Wait until `found()` is something, and return it."""
        with self._changed:
            self._changed.wait_for(found, timeout)
            seen = found()
        assert seen, [path for path, _, _ in self.exports]
        return seen
