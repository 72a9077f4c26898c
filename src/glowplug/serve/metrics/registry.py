"""What is counted, in Prometheus' text form, under TensorFlow Serving's names where it has them."""

from __future__ import annotations

import math
import time
from collections import deque
from pathlib import Path

from prometheus_client import CollectorRegistry, Gauge, ProcessCollector, generate_latest

from glowplug.serve.models.catalog import Catalog
from glowplug.serve.models.versions import State, Version

from .meters import Count, Counter, Histogram, Spread
from .trouble import Trouble

DEFAULT_PATH = "/monitoring/prometheus/metrics"
_LATENCY = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
_MICROSECONDS = tuple(10 * 1.8**power for power in range(33))  # TensorFlow Serving's buckets
_PAGE_SECONDS = 1.0
_KEPT_LATENCIES = 2048
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class Metrics:
    """All meters of one server."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._page, self._page_at = b"", -math.inf
        self._request_meters: dict[tuple[str, str, str, str], tuple[Count, Spread]] = {}
        self._answer_meters: dict[tuple[str, int, str], tuple[Count, Spread]] = {}
        self._latencies: deque[float] = deque(maxlen=_KEPT_LATENCIES)
        self.trouble = Trouble()
        self.registry = registry = CollectorRegistry()
        by_model = ("model_name", "version")
        self._requests = Counter(
            ":tensorflow:serving:request_count", "Requests by outcome.", ("model_name", "status"), plain=True
        )
        self._latency = Histogram(
            ":tensorflow:serving:request_latency",
            "Microseconds from the last byte of a request to its good answer.",
            ("model_name", "API", "entrypoint"),
            _MICROSECONDS,
        )
        self.answers = Counter("glowplug_serve_answers", "Answers by version.", by_model)
        by_signature = (*by_model, "signature")
        self._signatures = Histogram(
            "glowplug_serve_signature_seconds", "From the queue to a good answer.", by_signature, _LATENCY
        )
        self._signature_errors = Counter(
            "glowplug_serve_signature_errors", "Calls that failed.", (*by_signature, "status")
        )
        self.rows = Histogram("glowplug_serve_batch_rows", "Rows of a batch.", by_model, _ROWS)
        self.padding = Counter("glowplug_serve_padding_rows", "Rows added to a batch.", by_model)
        self.waits = Histogram("glowplug_serve_queue_seconds", "Time in the queue.", by_model, _LATENCY)
        self.deaths = Counter("glowplug_serve_worker_deaths", "Workers that ended.", by_model)
        meters = (self._requests, self._latency, self.answers, self._signatures, self._signature_errors)
        for meter in (*meters, self.rows, self.padding, self.waits, self.deaths):
            registry.register(meter)
        ProcessCollector(registry=registry)  # process_start_time_seconds and its like, of this process
        self._first = Gauge(
            "glowplug_serve_first_request_seconds", "Latency of a version's first request.", by_model, registry=registry
        )
        self._load = Gauge("glowplug_serve_load_seconds", "Time to load.", (*by_model, "stage"), registry=registry)
        self._state = Gauge("glowplug_serve_version_state", "State, 30 is AVAILABLE.", by_model, registry=registry)
        self._queue = Gauge("glowplug_serve_queue_length", "Calls that wait.", by_model, registry=registry)
        self._pss = Gauge("glowplug_serve_pss_bytes", "Memory of the workers.", by_model, registry=registry)

    def request(self, protocol: str, method: str, model: str, code: str, seconds: float) -> None:
        """Count a request that was answered, well or not."""
        known = model if model in self._catalog.models else ""  # names that clients make up must not fill the memory
        counter, latency = self._request_meters.get((known, protocol, method, code)) or self._request_meter(
            known, protocol, method, code
        )
        counter.add()
        if code == "OK":
            latency.add(seconds * 1e6)
            self._latencies.append(seconds)

    def _request_meter(self, model: str, protocol: str, method: str, code: str) -> tuple[Count, Spread]:
        found = self._requests.of(model, code), self._latency.of(model, method, protocol)
        self._request_meters[model, protocol, method, code] = found
        return found

    def answered(self, version: Version, signature: str, seconds: float) -> None:
        """Count an answer of a version."""
        answers, spread = self._answer_meters.get((version.model, version.number, signature)) or self._answer_meter(
            version, signature
        )
        answers.add()
        spread.add(seconds)

    def _answer_meter(self, version: Version, signature: str) -> tuple[Count, Spread]:
        labels = version.model, str(version.number)
        found = self.answers.of(*labels), self._signatures.of(*labels, signature)
        self._answer_meters[version.model, version.number, signature] = found
        return found

    def failed(self, version: Version, signature: str, code: str) -> None:
        """Count a call of a version that has no answer."""
        self._signature_errors.of(version.model, str(version.number), signature, code).add()

    def totals(self) -> tuple[int, int]:
        """Return how many requests there were, and how many of them failed."""
        every = failed = 0
        for (_, code), count in self._requests.counts():
            every += count
            failed += 0 if code == "OK" else count
        return every, failed

    def answer_counts(self) -> dict[tuple[str, int], int]:
        """Return the answers of each version."""
        return {(model, int(version)): count for (model, version), count in self.answers.counts()}

    def take_latencies(self) -> list[float]:
        """Return the seconds that the last good answers took, since this was asked before; not more than some."""
        taken = list(self._latencies)
        self._latencies.clear()
        return taken

    def observer(self, version: Version) -> VersionMeter:
        """Return the meter that a version's group reports to."""
        return VersionMeter(self, version)

    def page(self, pids: dict[int, int]) -> bytes:
        """Return the text for a scrape, made at most once a second. `pids` maps worker numbers to process ids."""
        now = time.monotonic()
        if now - self._page_at > _PAGE_SECONDS:
            self._page, self._page_at = self._make_page(pids), now
        return self._page

    def _make_page(self, pids: dict[int, int]) -> bytes:
        for gauge in (self._state, self._queue, self._pss, self._load, self._first):
            gauge.clear()
        for model in self._catalog.models.values():
            for version in model.versions.values():
                labels = (version.model, str(version.number))
                self._state.labels(*labels).set(int(version.state))
                if version.group is None or version.state is not State.AVAILABLE:
                    continue
                self._queue.labels(*labels).set(version.group.waiting)
                if version.first_answer_s:
                    self._first.labels(*labels).set(version.first_answer_s)
                described = version.describe()
                self._load.labels(*labels, "load").set(described["load_ns"] / 1e9)
                self._load.labels(*labels, "warmup").set(described["warmup_ns"] / 1e9)
                self._pss.labels(*labels).set(sum(pss_bytes(pids.get(number, 0)) for number in version.group.numbers))
        page: bytes = generate_latest(self.registry)
        return page


class VersionMeter:
    """Counts for one version what its group does."""

    def __init__(self, metrics: Metrics, version: Version) -> None:
        labels = (version.model, str(version.number))
        self._version, self._trouble = version, metrics.trouble
        self._rows = metrics.rows.of(*labels)
        self._waits = metrics.waits.of(*labels)
        self._deaths = metrics.deaths.of(*labels)
        self._padding = metrics.padding.of(*labels)

    def batch_sent(self, rows: int, padding: int, waited_s: float) -> None:
        """Learn that a batch went to a worker."""
        self._rows.add(rows or 1)
        self._waits.add(waited_s)
        if padding:
            self._padding.add(padding)

    def worker_died(self, reason: str) -> None:
        """Learn that a worker ended on its own."""
        self._deaths.add()
        about = {"model": self._version.model, "version": self._version.number, "error": reason}
        self._trouble.event("worker_died", about)


def pss_bytes(pid: int) -> int:
    """Return a process' proportional share of memory, 0 where it cannot be read."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0
