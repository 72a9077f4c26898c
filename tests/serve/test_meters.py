"""What the meters write is what those of prometheus_client write."""

from __future__ import annotations

import math

import prometheus_client
import pytest

from glowplug.serve.metrics import meters

BOUNDS = (0.5, 1, 30)


def page(*collectors) -> list[str]:
    registry = prometheus_client.CollectorRegistry()
    for collector in collectors:
        registry.register(collector)
    text = prometheus_client.generate_latest(registry).decode()
    return [line for line in text.splitlines() if "_created" not in line]


@pytest.mark.parametrize("values", [[], [0], [0.5, 0.50001, 1], [31, math.inf, -1], [30] * 1000])
def test_a_histogram(values):
    ours = meters.Histogram("waits", "Time.", ("model",), BOUNDS)
    theirs = prometheus_client.Histogram("waits", "Time.", ("model",), buckets=BOUNDS, registry=None)
    for name in ("a", 'quoted "b"'):
        mine, other = ours.of(name), theirs.labels(name)
        for value in values:
            mine.add(value)
            other.observe(value)
    assert page(ours) == page(theirs)


def test_a_name_that_stays_as_it_is():
    counter = meters.Counter(":tensorflow:serving:request_count", "Requests.", ("status",), plain=True)
    counter.of("OK").add(2)
    assert page(counter)[1:] == [
        "# TYPE :tensorflow:serving:request_count untyped",
        ':tensorflow:serving:request_count{status="OK"} 2.0',
    ]


def test_a_counter():
    ours = meters.Counter("requests", "Requests.", ("model", "code"))
    theirs = prometheus_client.Counter("requests", "Requests.", ("model", "code"), registry=None)
    for labels, amount in ((("a", "OK"), 1), (("a", "OK"), 3), (("b", "NOT_FOUND"), 1)):
        ours.of(*labels).add(amount)
        theirs.labels(*labels).inc(amount)
    assert page(ours) == page(theirs)
