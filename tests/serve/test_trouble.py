"""The last errors, and the last minutes."""

from __future__ import annotations

import pytest

from glowplug.serve.metrics import history
from glowplug.serve.metrics.history import History
from glowplug.serve.metrics.registry import Metrics
from glowplug.serve.metrics.trouble import KEPT, Trouble
from glowplug.serve.models.catalog import Catalog, Model
from glowplug.serve.models.config import ModelConfig
from glowplug.serve.models.sources import Source
from glowplug.serve.models.versions import Version


def test_requests_do_not_push_out_what_happened_to_the_server():
    trouble = Trouble()
    trouble.event("load_failed", {"model": "half", "version": 2, "error": "no weights"})
    for number in range(1000):
        trouble.request("REST", "predict", "half", "INVALID_ARGUMENT", f"bad {number}")
    found = trouble.newest()
    assert len(found) == KEPT + 1
    assert [entry["text"] for entry in found[:2]] == ["bad 999", "bad 998"]
    last = found[-1]
    assert (last["what"], last["model"], last["version"], last["text"]) == ("load_failed", "half", "2", "no weights")


def test_what_comes_again_is_counted():
    trouble = Trouble()
    for _ in range(5):
        trouble.request("gRPC", "Predict", "half", "UNAVAILABLE", "gone")
        trouble.request("gRPC", "Predict", "other", "UNAVAILABLE", "gone")
    assert [(entry["model"], entry["count"]) for entry in trouble.newest()] == [("other", 5), ("half", 5)]


def test_texts_are_cut_and_can_be_written():
    trouble = Trouble()
    trouble.request("REST", "x" * 10_000, "\udcff" * 10_000, "NOT_FOUND", "\udc00" + "y" * 10_000)
    (entry,) = trouble.newest()
    for name in ("what", "model", "text"):
        assert len(entry[name].encode()) <= 300, name


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def served(tmp_path):
    catalog = Catalog()
    catalog.models["half"] = Model(ModelConfig("half", tmp_path))
    return catalog, Version("half", 3, Source(tmp_path, "bundle", "stamp"))


def test_a_sample_is_what_happened_since_the_last_one(served):
    catalog, version = served
    metrics, clock = Metrics(catalog), Clock()
    kept = History(metrics, catalog, {}, clock)
    kept.sample()
    for place in range(100):
        metrics.request("REST", "predict", "half", "OK", (place + 1) / 1000)
        metrics.answered(version, "serving_default", 0.001)
    for _ in range(20):
        metrics.request("GRPC", "Predict", "half", "NOT_FOUND", 9.0)
    clock.now += 10
    kept.sample()
    clock.now += 10
    kept.sample()
    series = kept.series()
    assert series["requests"] == [0, 12, 0]
    assert series["errors"] == [0, 2, 0]
    assert series["p50_ms"] == [None, 51, None]
    assert series["p99_ms"] == [None, 100, None]
    assert kept.rate("half", 3) == 5  # over all of the 20 s
    assert kept.rate("half", 4) == 0


def test_the_history_is_bounded(served):
    catalog, _ = served
    metrics, clock = Metrics(catalog), Clock()
    kept = History(metrics, catalog, {}, clock)
    assert kept.series()["requests"] == []
    for _ in range(3000):
        metrics.request("REST", "predict", "half", "OK", 0.001)
    assert len(metrics.take_latencies()) == 2048
    for _ in range(2 * history.SAMPLES):
        clock.now += 2
        kept.sample()
    assert {len(values) for values in kept.series().values() if isinstance(values, list)} == {history.SAMPLES}
