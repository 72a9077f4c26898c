"""Metrics for OpenTelemetry: durations as they happen, and what there is to read when an export is due."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from glowplug.serve.metrics.registry import Metrics, pss_bytes
from glowplug.serve.models.catalog import Catalog
from glowplug.serve.models.versions import State, Version

from .trail import ModelCall, Outcome

DURATIONS = "glowplug.serve.*.duration"
SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)


class Measures:
    """All instruments of one server. `pids` maps worker numbers to process ids."""

    def __init__(self, meter: Meter, catalog: Catalog, metrics: Metrics, pids: Mapping[int, int]) -> None:
        self._catalog, self._metrics, self._pids = catalog, metrics, pids
        prefix = "glowplug.serve"

        def seconds(name: str, text: str) -> Callable[[float, dict[str, str]], None]:
            record: Callable[[float, dict[str, str]], None] = meter.create_histogram(
                f"{prefix}.{name}", "s", text
            ).record
            return record

        self._requests = seconds("request.duration", "Requests, from the last byte that came to the answer.")
        self._calls = seconds("call.duration", "Calls of a signature, from the queue to the answer.")
        self._workers = seconds("worker.duration", "Calls of a signature, in the worker.")
        observed: dict[str, tuple[str, str, Callable[[Version], int]]] = {
            "version.state": ("1", "State of a version, 30 is AVAILABLE.", lambda one: int(one.state)),
            "queue.length": ("{call}", "Calls that wait.", lambda one: one.group.waiting if one.group else 0),
            "worker.count": ("{process}", "Workers.", lambda one: len(one.group.numbers) if one.group else 0),
            "worker.memory": ("By", "Workers' share of memory.", self._memory),
        }
        for name, (unit, text, read) in observed.items():
            meter.create_observable_gauge(f"{prefix}.{name}", [self._gauge(name, read)], unit, text)
        meter.create_observable_counter(
            f"{prefix}.worker.deaths", [self._deaths], "{process}", "Workers that ended on their own."
        )

    def called(self, call: ModelCall) -> None:
        """Count a call of a model."""
        labels = {"model": call.model, "version": call.version, "signature": call.signature}
        if call.code != "OK":
            labels["error.type"] = call.code
        self._calls(time.perf_counter() - call.began, labels)
        if call.timing is not None and call.timing.ended_ns:
            self._workers((call.timing.ended_ns - call.timing.began_ns) / 1e9, labels)

    def ended(self, protocol: str, outcome: Outcome) -> None:
        """Count a request. Names of models that clients make up are not among the labels."""
        model = outcome.model if outcome.model in self._catalog.models else ""
        labels = {"protocol": protocol, "method": outcome.method, "model": model, "code": outcome.code}
        self._requests(outcome.seconds, labels)

    # An exporter's thread calls these, while the loop goes on: what they walk over is copied first.

    def _gauge(self, name: str, read: Callable[[Version], int]) -> Callable[[CallbackOptions], Iterator[Observation]]:
        def observe(options: CallbackOptions) -> Iterator[Observation]:
            for model in list(self._catalog.models.values()):
                for version in list(model.versions.values()):
                    if name == "version.state" or version.state is State.AVAILABLE:
                        labels = {"model": version.model, "version": str(version.number)}
                        yield Observation(read(version), labels)

        return observe

    def _memory(self, version: Version) -> int:
        numbers = version.group.numbers if version.group else []
        return sum(pss_bytes(self._pids.get(number, 0)) for number in numbers)

    def _deaths(self, options: CallbackOptions) -> Iterator[Observation]:
        for (model, version), count in self._metrics.deaths.counts():
            yield Observation(count, {"model": model, "version": version})
